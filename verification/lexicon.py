"""Words that are not names although they look or stand like one, and words that make a compound a name."""


def split_word_list(text: str) -> frozenset[str]:
    """The words of a list written with spaces."""
    return frozenset(text.split())


# Technical terms with a name's shape.
GENERIC = split_word_list(
    "k8s ipv4 ipv6 utf8 utf-8 sha256 md5 base64 oauth2 x86_64 amd64 arm64 i/o e.g i.e a.k.a vs and/or"
    " postgresql mysql github gitlab javascript typescript mongodb dynamodb rabbitmq graphql nodejs grpc"
    " oauth opentelemetry websocket websockets openssl macos mtls nan utc+8 json yaml"
    " devops openai youtube linkedin cpu/memory read/write"
)
# A compound with one of these inside is prose (`out-of-memory`).
JOINTS = split_word_list(
    "to of in by the and on up off a an or for at as no is it over per out down than vs with from"
)
# What a two-part compound must hold to be a name (`payments-api`).
COMPONENTS = split_word_list(
    "api service services svc server db database worker workers gateway proxy cache queue frontend backend job"
    " cron pod deployment controller operator prod staging replica node cluster consumer producer broker"
    " scheduler daemon agent sidecar ingress lb redis mysql postgres kafka mongo mongodb nginx rabbitmq elastic"
    " web app mq store svc1 app1"
)
# Beside these even such a compound is prose (`service-level`, `cross-node`).
PARTNERS = split_word_list(
    "cross per multi single non client side in inter intra level wide miss misses hit hits depth full size rate"
    " time based bound only driven related to up down facing read write self sub pre post specific induced"
    " ready aware less free local stale other of out and on side-by the long short high low new old all more"
    " sent account accounts made run led written grained well half full-time crash back first second third mid same five ten"
)
# `the failing service` names nothing.
ADJECTIVES = split_word_list(
    "affected failing failed broken slow faulty unhealthy healthy same other another first second third last"
    " next new old whole entire own single main primary secondary central critical key core downstream upstream"
    " calling called caller callee dependent depending external internal remote local backing underlying target"
    " suspect suspected culprit blamed named given single-node every each any some this that these those"
    " crashing restarting running pending waiting stuck terminated evicted terminating restarted deleted missing"
    " observed monitored responsible relevant respective corresponding remaining existing current previous prior"
    " original victim busiest slowest fastest loudest top most least only default production staging test user"
    " customer frontend backend front back web data message relational shared dead idle hot cold read write"
    " replica leader follower master worker source destination parent child initial final resulting specific"
    " particular actual real possible likely probable root noisy overloaded degraded impacted leading lone sole"
    " full empty large small big heavy unknown unseen certain different similar identical following preceding"
    " said mentioned batch cron background scheduled micro cloud managed hosted connected neighbouring kubernetes"
    " redis postgres postgresql mysql kafka mongo mongodb nginx rabbitmq elasticsearch docker linux java python"
    " node pod container database application service cluster host network storage disk memory cpu dns cache"
    " one two three simple simpler pool retry lock wait temporary permanent active inactive standby running ready"
)
# `the queries queue up` names nothing: what is counted, not what it is called.
COUNTED_THINGS = split_word_list(
    "queries requests calls messages jobs tasks threads processes writes reads clients users customers connections"
    " transactions sessions events packets records rows items statements replies responses retries lines errors"
    " workers consumers producers brokers replicas pods nodes hosts containers instances services shards partitions"
    " callers callees callbacks goroutines fibers commands operations uploads downloads deliveries checkpoints"
)

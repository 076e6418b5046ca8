"""A hundred forms written with the rules in sight: other spellings of names, signs, quotes, encodings and places than the vendors' documents show."""

import base64
from urllib.parse import quote

from planted_secrets import SecretForm


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _wrapped_base64(text: str) -> str:
    whole = base64.encodebytes(
        f"# settings of the shop, kept with care\nregion: eu\ndb_password: {text}\n".encode()
    )
    return whole.decode().rstrip("\n")


def _break_with_ansi(text: str) -> str:
    return f"{text[:4]}\x1b[0m\x1b[32m{text[4:]}"


def _break_with_tags(text: str) -> str:
    return f"{text[:2]}\U000e0041{text[2:]}"


OPTIONS = [
    SecretForm("option with space", "worker --db-password {} --queue orders"),
    SecretForm("option with quotes", 'worker --password "{}" --queue orders'),
    SecretForm("option with single quotes", "worker --password '{}' --queue orders"),
    SecretForm("single dash option", "influx -username admin -password {} -host db"),
    SecretForm("token option", "kubectl --token {} get pods", "<w32>"),
    SecretForm("api key option", "tool --api-key {} list", "<w32>"),
    SecretForm("secret key option", "mc alias set s3 http://s3 --secret-key {}", "<w32>"),
    SecretForm("option list as JSON", '{"args":["--queue","orders","--password","{}"]}'),
    SecretForm("option list as Python", "exec ['mysql', '-h', 'db', '-p{}']"),
    SecretForm("joined option list", '"command":["sh","-c","mysql -h db -u shop -p{} shop"]'),
    SecretForm("mysql in a path", "/usr/bin/mysql -ushop -p{} -hdb shop"),
    SecretForm("mysqladmin", "mysqladmin -u root -p'{}' ping"),
    SecretForm("mongosh", "mongosh --host db -u admin -p {} --authenticationDatabase admin"),
    SecretForm("podman login", "podman login -u ci -p {} quay.io"),
    SecretForm("helm registry", "helm registry login -u ci -p {} ghcr.io"),
    SecretForm("curl joined user", "curl -uadmin:{} https://es:9200"),
    SecretForm("curl user with equals", "curl --user=admin:{} https://es:9200"),
    SecretForm("curl quoted user", "curl -s -u 'admin:{}' https://es:9200"),
    SecretForm("curl proxy user", "curl --proxy-user bob:{} -x http://proxy:3128 https://x"),
    SecretForm("etcdctl", "etcdctl --endpoints=e:2379 --user root:{} get /"),
    SecretForm("sshpass joined", "sshpass -p{} ssh root@db"),
    SecretForm("sqlcmd", "sqlcmd -S db -U sa -P {} -Q 'select 1'"),
    SecretForm("ldapmodify", "ldapmodify -x -D cn=admin,dc=x -w {} -f a.ldif"),
    SecretForm("smbclient", "smbclient //nas/share -U bob%{} -c ls"),
    SecretForm("openssl", "openssl rsa -in k.pem -passin pass:{} -out o.pem"),
    SecretForm("keytool", "keytool -list -keystore a.jks -storepass {}"),
    SecretForm("rabbitmqctl", "rabbitmqctl change_password shop {}"),
    SecretForm("vault login", "vault login {}", "<w26>"),
    SecretForm("sqlplus", "sqlplus shop/{}@ORCL @x.sql"),
    SecretForm("chpasswd", "echo 'root:{}' | chpasswd"),
    SecretForm("password on stdin", "echo {} | docker login -u ci --password-stdin ghcr.io"),
]
NAMED = [
    SecretForm("pass", "user=shop pass={} host=db"),
    SecretForm("DB_PASS", "DB_PASS={}"),
    SecretForm("dbPass", '{"dbPass": "{}"}'),
    SecretForm("smtp_pass", "smtp_pass: {}"),
    SecretForm("bindpw", "bindpw {}".replace(" ", "=")),
    SecretForm("numbered", "password2={}"),
    SecretForm("with stage", "DB_PASSWORD_PROD={}"),
    SecretForm("old password", "password_old: {}"),
    SecretForm("arrow", "password -> {}"),
    SecretForm("thin arrow without spaces", "password->{}"),
    SecretForm("fat arrow", "db_password => {}"),
    SecretForm("unicode arrow", "password → {}"),
    SecretForm("walrus", 'password := "{}"'),
    SecretForm("double equals", "password=={}"),
    SecretForm("ruby symbol", '{:secret_key_base=>"{}"}', "<h128>"),
    SecretForm("perl hash", "passwd => '{}'"),
    SecretForm("python keyword", "connect(host='db', passwd='{}')"),
    SecretForm("bracket", 'env["DB_PASSWORD"] = "{}"'),
    SecretForm("javascript", "const password = `{}`;"),
    SecretForm("JSON with blanks", '{ "password" : "{}" }'),
    SecretForm("JSON in JSON", r'{"body":"{\"auth\":{\"password\":\"{}\"}}"}'),
    SecretForm("yaml", "  password: {}"),
    SecretForm("yaml single quotes", "  password: '{}'"),
    SecretForm("yaml folded", "  secret: >-\n    {}\n  next: 1"),
    SecretForm("yaml env list", "- name: API_TOKEN\n  value: {}", "<w32>"),
    SecretForm("yaml env list quoted", '- name: DB_PASSWORD\n  value: "{}"'),
    SecretForm("xml element", "<Password>{}</Password>"),
    SecretForm("xml attribute", '<db user="shop" password="{}" port="1"/>'),
    SecretForm("xml with attributes", '<secret id="a" kind="db">{}</secret>'),
    SecretForm("xml escaped", "&lt;password&gt;{}&lt;/password&gt;"),
    SecretForm("plist", "<key>APIToken</key>\n  <string>{}</string>", "<w32>"),
    SecretForm("property element", '<property name="hibernate.connection.password" value="{}"/>'),
    SecretForm("query with semicolons", "Driver=x;UID=shop;PWD={};Port=1"),
    SecretForm("header in a list", "headers=[('X-Auth-Token', '{}')]", "<w32>"),
    SecretForm("api key of a cloud", "x-functions-key: {}", "<b54>=="),
    SecretForm("signing secret", "SLACK_SIGNING_SECRET={}", "<h32>"),
    SecretForm("jwt secret", "JWT_SECRET={}"),
    SecretForm("consumer key", "consumerKey={}", "<w25>"),
    SecretForm("credentials", "credentials=shop:{}"),
    SecretForm("set by ansible", "vault_password: {}"),
    SecretForm("identified with", "ALTER USER 'a'@'%' IDENTIFIED WITH caching_sha2_password BY '{}'"),
    SecretForm("set password", "SET PASSWORD FOR 'shop'@'%' = '{}'"),
    SecretForm("prose is", "the password is {} for now"),
    SecretForm("prose changed to", "password for shop was {}"),
    SecretForm("netrc in one line", "machine db login shop password {}"),
]
ENCODED = [
    SecretForm("percent", "GET /login?next=%2Fx%26password%3D{}%26a%3D1"),
    SecretForm("percent twice", "GET /login?next=password%253D{}%2526a"),
    SecretForm("percent in value", "GET /login?user=a&password={}&b=1", "<w8>%21<w6>"),
    SecretForm("html entities", "&quot;password&quot;:&quot;{}&quot;"),
    SecretForm("numeric entities", "&#34;password&#34;:&#34;{}&#34;"),
    SecretForm("unicode escapes", r"\u0022password\u0022:\u0022{}\u0022"),
    SecretForm("hex escapes", r"\x22password\x22: \x22{}\x22"),
    SecretForm("base64 pair", "cfg={}", "<pw>", lambda text: _base64(f"password={text}")),
    SecretForm("base64 JSON", "payload: {}", "<pw>", lambda text: _base64(f'{{"user":"a","password":"{text}"}}')),
    SecretForm("base64 url-safe", "state={}", "<pw>", lambda text: base64.urlsafe_b64encode(f"client_secret={text}&x=???>>".encode()).decode()),
    SecretForm("base64 in base64", "blob {}", "<pw>", lambda text: _base64(_base64(f"the password={text};"))),
    SecretForm("base64 of a token", "blob {}", "ghp_<w36>", _base64),
    SecretForm("base64 wrapped", "blob:\n{}\n", "<pw>", _wrapped_base64),
    SecretForm("base64 of utf-16", "powershell -enc {}", "<pw>", lambda text: base64.b64encode(f"$password='{text}'".encode("utf-16-le")).decode()),
    SecretForm("base64 in a JSON line", r'{"log":"start\n{}\n"}', "<pw>", lambda text: _base64(f"token: {text}{text}")),
    SecretForm("base64 percent", "next={}", "<pw>", lambda text: quote(_base64(f"password={text}!"), safe="")),
    SecretForm("hex pair", "dump {}", "<pw>", lambda text: f"password={text}".encode().hex()),
    SecretForm("hex upper case", "dump 0x{}", "<pw>", lambda text: f"password={text}".encode().hex().upper()),
    SecretForm("ansi in the name", "\x1b[1mpass\x1b[22mword\x1b[0m: {}"),
    SecretForm("ansi in the value", "password={}", "<pw>", _break_with_ansi),
    SecretForm("spelled ansi", r"\u001b[33mpassword\u001b[0m=\u001b[36m{}\u001b[0m"),
    SecretForm("zero-width in the name", "pass\u200bword={}"),
    SecretForm("soft hyphen in the name", "pass\xadword={}"),
    SecretForm("joiner in the name", "to\u200dken={}", "<w32>"),
    SecretForm("byte order mark in the name", "\ufeffpassword\ufeff={}"),
    SecretForm("tag characters in the value", "password={}", "<pw>", _break_with_tags),
    SecretForm("override in a token", "see {}", "ghp_<w36>", lambda text: f"{text[:9]}\u202e{text[9:]}"),
    SecretForm("zero-width in a url", "postgres://shop:{}@db/shop", "<pw>", lambda text: f"{text[:4]}\u2060{text[4:]}"),
    SecretForm("line separator after", "password={}\u2028next line"),
    SecretForm("next line before", "first\x85password={}"),
]  # fmt: skip
PLACES = [
    SecretForm("key in log lines", "12:01 app: -----BEGIN RSA PRIVATE KEY-----\n12:01 app: {}\n12:01 app: -----END RSA PRIVATE KEY-----", "<b64>"),
    SecretForm("key without end in log lines", "12:01 app: -----BEGIN RSA PRIVATE KEY-----\n12:01 app: {}", "<b64>"),
    SecretForm("line of a key alone", "12:01 app: {}", "<b30>Aa0/<b30>"),
    SecretForm("pgp key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{}\n=aBcD\n-----END PGP PRIVATE KEY BLOCK-----", "<b64>"),
    SecretForm("aws secret before its id", "secret {} of AKIA<u16>", "<b38>aZ"),
    SecretForm("aws pair with slash", "keys: AKIA<u16>/{}", "<b38>aZ"),
    SecretForm("aws pair in csv", "alice,AKIA<u16>,{},eu-west-1", "<b37>a1Z"),
    SecretForm("unknown scheme", "foo+bar://svc:{}@host:1/x"),
    SecretForm("ldap url", "ldaps://cn=admin:{}@ldap:636"),
    SecretForm("password with slash in a url", "postgres://shop:{}@db:5432/shop", "<w6>/<w6>a"),
    SecretForm("password with at sign in a url", "mysql://shop:{}@db:3306/shop", "<w6>@<w6>a"),
    SecretForm("percent-encoded password in a url", "amqp://shop:{}@mq", "<w6>%2F<w6>"),
    SecretForm("several hosts", "mongodb://shop:{}@a:27017,b:27017/shop"),
    SecretForm("password of a second host", "redis://:<w8>1@a:6379,redis://:{}@b:6379"),
    SecretForm("secret of a manifest in JSON", '{"kind":"Secret","data":{"x":"{}"},"type":"Opaque"}', "<pw>", _base64),
    SecretForm("secret of a manifest before its kind", "data:\n  conf: {}\nkind: Secret\n", "<pw>", _base64),
    SecretForm("stringData", "kind: Secret\nstringData:\n  dsn: {}\n"),
    SecretForm("last applied", r'"last-applied":"{\"kind\":\"Secret\",\"data\":{\"x\":\"{}\"}}"', "<pw>", _base64),
]  # fmt: skip

WRITTEN_FORMS = [*OPTIONS, *NAMED, *ENCODED, *PLACES]

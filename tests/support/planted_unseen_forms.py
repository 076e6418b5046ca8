"""A hundred forms that were kept aside until the rules were finished: the share that is found here is what a stranger's text can expect."""

import base64
from urllib.parse import quote

from planted_secrets import SecretForm


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _base64_setting(text: str) -> str:
    return _base64(f"db_password={text}\nmode=fast\n")


def _hex(text: str) -> str:
    return f"password={text}".encode().hex()


def _percent(text: str) -> str:
    return quote(f"password={text}", safe="")


def _zero_width(text: str) -> str:
    return f"{text[:3]}\u200b{text[3:]}"


UNSEEN_FORMS = [
    SecretForm("1password service token", "op: {} expired", "ops_eyJ<w260>"),
    SecretForm("adobe secret", "ims: {}", "p8e-<l32>"),
    SecretForm("airtable token", "airtable 401 {}", "pat<w14>.<h64>"),
    SecretForm("alibaba key id and secret", "aliyun configure LTAI<l20> AccessKeySecret={}", "<w30>"),
    SecretForm("bedrock key", "bedrock {}", "ABSK<b109>="),
    SecretForm("clojars", "lein deploy {}", "CLOJARS_<l60>"),
    SecretForm("cloudflare origin key", "cf-origin {}", "v1.0-<h24>-<h146>"),
    SecretForm("cloudflare header", "X-Auth-Key: {}", "<h37>"),
    SecretForm("duffel", "duffel {}", "duffel_live_<s43>"),
    SecretForm("easypost", "easypost {}", "EZAK<w54>"),
    SecretForm("facebook page token", "graph: {}", "EAAC<w120>"),
    SecretForm("fly.io", "flyctl auth {}", "fo1_<s43>"),
    SecretForm("flutterwave", "flw: {}", "FLWSECK_TEST-<h32>-X"),
    SecretForm("frame.io", "frame: {}", "fio-u-<s64>"),
    SecretForm("gitlab session cookie", "Cookie: _gitlab_session={}; theme=dark", "<h32>"),
    SecretForm("gitlab feed token", "GET /feed?feed_token={} 200", "glft-<s20>"),
    SecretForm("gitlab scim", "scim {}", "glsoat-<s20>"),
    SecretForm("gitlab oauth secret", "oauth app {}", "gloas-<s64>"),
    SecretForm("harness", "harness {}", "pat.<s22>.<w24>.<w20>"),
    SecretForm("infracost", "infracost {}", "ico-<w32>"),
    SecretForm("maxmind", "geoipupdate {}", "<w6>_<w29>_mmk"),
    SecretForm(
        "teams webhook",
        "POST https://acme.webhook.office.com/webhookb2/{}",
        "<uuid>@<uuid>/IncomingWebhook/<h32>/<uuid>",
    ),
    SecretForm("notion", "notion {}", "ntn_<d11><w35>"),
    SecretForm("octopus", "octo push {}", "API-<u26>"),
    SecretForm("okta", "Authorization: SSWS {}", "00<s40>"),
    SecretForm("openshift", "oc login with {}", "sha256~<s43>"),
    SecretForm("perplexity", "pplx {}", "pplx-<w48>"),
    SecretForm("prefect", "prefect cloud {}", "pnu_<w36>"),
    SecretForm("readme", "rdme {}", "rdme_<l70>"),
    SecretForm("sendinblue", "brevo {}", "xkeysib-<h64>-<w16>"),
    SecretForm("shippo", "shippo {}", "shippo_live_<h40>"),
    SecretForm("sourcegraph", "src {}", "sgp_<h16>_<h40>"),
    SecretForm("sonar", "sonar-scanner -Dsonar.token={}", "squ_<h40>"),
    SecretForm("typeform", "typeform {}", "tfp_<s59>"),
    SecretForm("figma", "figma {}", "figd_<s40>"),
    SecretForm("vercel blob", "vercel {}", "vercel_blob_rw_<w16>_<w30>"),
    SecretForm("supabase", "supabase login {}", "sbp_<h40>"),
    SecretForm("replicate", "replicate {}", "r8_<w37>"),
    SecretForm("groq", "groq {}", "gsk_<w52>"),
    SecretForm("xai", "xai {}", "xai-<w80>"),
    SecretForm("buildkite", "agent {}", "bkua_<h40>"),
    SecretForm("circleci", "circleci {}", "CCIPAT_<w22>_<h40>"),
    SecretForm("tailscale", "tailscale up --authkey {}", "tskey-auth-<w12>CNTRL-<w32>"),
    SecretForm("sentry organisation token", "sentry {}", "sntrys_<b160>_<b43>"),
    SecretForm("discord webhook", "POST https://discord.com/api/webhooks/<d18>/{} 204", "<s68>"),
    SecretForm("azure devops", "AZURE_DEVOPS_EXT_PAT={}", "<l52>"),
    SecretForm("azure function key", "GET https://fn.azurewebsites.net/api/x?code={} 401", "<s54>=="),
    SecretForm("jwt in query", "GET /ws?access_token={} 101", "<jwt>"),
    SecretForm("jwt in cookie", "Set-Cookie: session={}; HttpOnly", "<jwt>"),
    SecretForm("bearer in a Go dump", "map[Authorization:[Bearer {}] Accept:[*/*]]", "<s40>"),
    SecretForm("bearer in a Python repr", "headers={'Authorization': 'Bearer {}', 'Accept': '*/*'}", "<s40>"),
    SecretForm("token scheme", "Authorization: Token {}", "<h40>"),
    SecretForm(
        "proxy authorization", "Proxy-Authorization: Basic {}", "<pw>", lambda text: _base64(f"proxy:{text}")
    ),
    SecretForm("cookie header", "Cookie: JSESSIONID={}", "<u32>"),
    SecretForm("X-API-Key in JSON", '{"headers":{"X-API-Key":["{}"]}}', "<w32>"),
    SecretForm(
        "hikari toString", "HikariDataSource (HikariPool-1) jdbcUrl=jdbc:mysql://db/shop?user=a&password={}"
    ),
    SecretForm("spring boot argument", "java -jar shop.jar --spring.datasource.password={} --server.port=80"),
    SecretForm("java system property", "java -Djavax.net.ssl.keyStorePassword={} -jar shop.jar"),
    SecretForm("java record", "DbConfig[host=db, user=shop, password={}, pool=10]"),
    SecretForm("rust debug", 'Config { host: "db", db_password: "{}", pool: 10 }'),
    SecretForm("go struct", "&{Host:db Password:{} Pool:10}"),
    SecretForm("python dataclass", "Settings(host='db', smtp_password='{}')"),
    SecretForm("python dict", "{'user': 'a', 'passwd': '{}'}"),
    SecretForm("escaped JSON", r'"msg":"{\"user\":\"a\",\"password\":\"{}\"}"'),
    SecretForm("twice escaped JSON", r"{\\\"client_secret\\\":\\\"{}\\\"}"),
    SecretForm("toml", '[db]\npassword = "{}"'),
    SecretForm("ini with colon", "smtp_pass: {}"),
    SecretForm("yaml quoted", 'db:\n  password: "{}"'),
    SecretForm("yaml block", "db:\n  password: |\n    {}\n  port: 1"),
    SecretForm("xml attribute in single quotes", "<connection host='db' passwd='{}'/>"),
    SecretForm("xml element with namespace", "<wsse:Password Type='PasswordText'>{}</wsse:Password>"),
    SecretForm("env export", "export ADMIN_PASS={}"),
    SecretForm("docker run env", "docker run -e MYSQL_ROOT_PASSWORD={} mysql:8"),
    SecretForm("dockerfile", "ENV API_TOKEN {}", "<w32>"),
    SecretForm("compose list", "- POSTGRES_PASSWORD={}"),
    SecretForm("windows set", "set DB_PWD={}"),
    SecretForm("powershell", "$env:ARM_CLIENT_SECRET = '{}'"),
    SecretForm("terraform variable", 'variable "db_password" { default = "{}" }'),
    SecretForm("helm set", "helm upgrade shop ./shop --set auth.rootPassword={}"),
    SecretForm("ansible", "ansible_become_pass: {}"),
    SecretForm("ldapsearch", "ldapsearch -x -D cn=admin -w {} -b dc=x"),
    SecretForm("psql url", "psql postgres://shop:{}@db/shop"),
    SecretForm("sqlalchemy url", "create_engine('mysql+pymysql://shop:{}@db:3306/shop')"),
    SecretForm("clickhouse url", "clickhouse://default:{}@ch:9000/default"),
    SecretForm("ftp url", "lftp ftp://shop:{}@ftp.acme.io"),
    SecretForm("git remote", "fatal: Authentication failed for 'https://ci:{}@git.acme.io/shop.git/'"),
    SecretForm("smtp url", "smtps://mailer%40acme.io:{}@smtp.acme.io:465"),
    SecretForm("kafka jaas", 'PlainLoginModule required username="shop" password="{}";'),
    SecretForm("rabbit curl", "curl --user guest:{} http://mq:15672/api"),
    SecretForm("http form body", "POST /login username=a&password={}&remember=1"),
    SecretForm("percent encoded pair", "GET /cb?state={} 302", "<pw>", _percent),
    SecretForm("base64 settings", "config.b64: {}", "<pw>", _base64_setting),
    SecretForm("hex settings", "payload 0x{}", "<pw>", _hex),
    SecretForm("zero width in the value", "password={}", "<pw>", _zero_width),
    SecretForm("ansi around the name", "\x1b[36mpass\x1b[0mword\x1b[0m={}"),
    SecretForm("prose", "the new password is {}"),
    SecretForm("prose with colon", "temporary password for shop: {}"),
    SecretForm(
        "pem in log lines",
        "10:00:01 app -----BEGIN EC PRIVATE KEY-----\n10:00:01 app {}\n10:00:01 app -----END EC PRIVATE KEY-----",
        "<b64>",
    ),
    SecretForm(
        "openssh key", "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----", "<pem>"
    ),
    SecretForm("pem cut at the end", "-----BEGIN PRIVATE KEY-----\n{}", "<pem>"),
    SecretForm("aws secret on the next line", "id: ASIA<u16>\nsecret {}", "<b40>"),
    SecretForm("aws session token", "AWS_SESSION_TOKEN={}", "<b300>"),
    SecretForm("totp seed", "otpauth://totp/a?secret={}&issuer=acme", "<u32>"),
    SecretForm("encryption key", "ENCRYPTION_KEY={}", "<b43>="),
]

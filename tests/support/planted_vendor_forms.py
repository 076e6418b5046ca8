"""A hundred forms written from vendors' documents and from the documents of public secret scanners, before the rules were read."""

import base64

from planted_secrets import SecretForm


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _basic(text: str) -> str:
    return _base64(f"svc-deploy:{text}")


# Tokens that their vendor marks by a prefix: found wherever they stand, without a word that announces them.
TOKENS = [
    SecretForm("github classic token", "remote: Invalid username or token {} for acme/shop", "ghp_<w36>"),
    SecretForm("github oauth token", "authenticated via {}", "gho_<w36>"),
    SecretForm("github app user token", "user {} refreshed", "ghu_<w36>"),
    SecretForm("github app server token", "cloning with x-access-token {}", "ghs_<w36>"),
    SecretForm("github refresh token", "refresh: {}", "ghr_<w76>"),
    SecretForm("github fine-grained token", "gh: {} lacks scope repo", "github_pat_<w22>_<w59>"),
    SecretForm("gitlab personal token", "fatal: unable to access with {}", "glpat-<s20>"),
    SecretForm("gitlab routable token", "fatal: unable to access with {}", "glpat-<s27>.<l2><l7>"),
    SecretForm("gitlab deploy token", "docker login registry.gitlab.com gitlab+deploy {}", "gldt-<s20>"),
    SecretForm("gitlab runner token", "runner {} registered", "glrt-<s20>"),
    SecretForm("gitlab job token", "job started with {}", "glcbt-<w2>_<s20>"),
    SecretForm("gitlab trigger token", "curl -X POST -F {}", "glptt-<h40>"),
    SecretForm("gitlab agent token", "agentk started {}", "glagent-<s50>"),
    SecretForm("slack bot token", "auth.test failed for {}", "xoxb-<d12>-<d12>-<w24>"),
    SecretForm("slack user token", "posting as {}", "xoxp-<d12>-<d12>-<d12>-<h32>"),
    SecretForm("slack app token", "socket mode {} connected", "xapp-1-A<u10>-<d13>-<h64>"),
    SecretForm(
        "slack webhook", "notifier: POST https://hooks.slack.com/services/{} 200", "T<u10>/B<u10>/<w24>"
    ),
    SecretForm("stripe secret key", "StripeError: Invalid API Key provided: {}", "sk_live_<w24>"),
    SecretForm("stripe restricted key", "charging with {}", "rk_live_<w99>"),
    SecretForm("stripe webhook secret", "stripe listen ready: {}", "whsec_<w32>"),
    SecretForm("aws access key with its secret", "aws configure: AKIA<u16> {}", "<b40>"),
    SecretForm(
        "aws session key id and secret in JSON", '{"AccessKeyId":"ASIA<u16>","SecretAccessKey":"{}"}', "<b40>"
    ),
    SecretForm(
        "gcp api key",
        "GET https://maps.googleapis.com/maps/api/geocode/json?address=x&key={} 403",
        "AIza<s35>",
    ),
    SecretForm("gcp oauth access token", "google: invalid credentials {}", "ya29.<s120>"),
    SecretForm("gcp oauth client secret", "oauth client GOCSPX: {}", "GOCSPX-<s28>"),
    SecretForm("azure client secret", "AADSTS7000215: Invalid client secret provided: {}", "<w3>8Q~<w34>"),
    SecretForm(
        "azure storage connection string",
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={};EndpointSuffix=core.windows.net",
        "<b86>==",
    ),
    SecretForm(
        "azure sas signature",
        "https://shop.blob.core.windows.net/logs?sv=2022-11-02&se=2026-01-01&sr=c&sp=r&sig={}",
        "<w43>%3D",
    ),
    SecretForm(
        "azure service bus",
        "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
        "<b43>=",
    ),
    SecretForm("npm token in .npmrc", "//registry.npmjs.org/:_authToken={}", "npm_<w36>"),
    SecretForm("npm token alone", "npm ERR! 401 {}", "npm_<w36>"),
    SecretForm("pypi token", "twine upload -u __token__ -p {} dist/*", "pypi-AgEIcHlwaS5vcmc<s150>"),
    SecretForm("rubygems token", "gem push failed for {}", "rubygems_<h48>"),
    SecretForm("twilio api key", "twilio: key {} was revoked", "SK<h32>"),
    SecretForm("twilio auth token", "TWILIO_AUTH_TOKEN={}", "<h32>"),
    SecretForm("sendgrid key", "mail: 401 for {}", "SG.<s22>.<s43>"),
    SecretForm("digitalocean token", "doctl auth init with {}", "dop_v1_<h64>"),
    SecretForm("digitalocean oauth token", "doctl {} expired", "doo_v1_<h64>"),
    SecretForm("heroku key", "HEROKU_API_KEY={}", "<uuid>"),
    SecretForm("heroku v2 key", "heroku: {} is not authorized", "HRKU-AA<s58>"),
    SecretForm("datadog api key", "DD_API_KEY={}", "<h32>"),
    SecretForm(
        "datadog header", "curl -H 'DD-API-KEY: {}' https://api.datadoghq.com/api/v1/validate", "<h32>"
    ),
    SecretForm("datadog application key", "curl -H 'DD-APPLICATION-KEY: {}'", "<h40>"),
    SecretForm("new relic user key", "newrelic: {} rejected", "NRAK-<u27>"),
    SecretForm("new relic license key", "license_key: '{}'", "<h36>NRAL"),
    SecretForm("new relic insert key", "X-Insert-Key: {}", "NRII-<s32>"),
    SecretForm("grafana service account", "grafana {} has role Admin", "glsa_<w32>_<h8>"),
    SecretForm("grafana cloud", "remote_write 401 with {}", "glc_<b120>=="),
    SecretForm("grafana legacy key", "grafana: invalid API key {}", "eyJrIjoi<w90>="),
    SecretForm(
        "openai project key",
        "Incorrect API key provided: {}. You can find your API key at",
        "sk-proj-<s58>T3BlbkFJ<s58>",
    ),
    SecretForm("openai legacy key", "openai {}", "sk-<w20>T3BlbkFJ<w20>"),
    SecretForm("anthropic key", "x-api-key {} was refused", "sk-ant-api03-<s93>AA"),
    SecretForm("huggingface token", "huggingface-cli login with {}", "hf_<w34>"),
    SecretForm("databricks token", "databricks: {} is expired", "dapi<h32>"),
    SecretForm("vault service token", "vault: permission denied for {}", "hvs.<s95>"),
    SecretForm("vault batch token", "vault: permission denied for {}", "hvb.<s150>"),
    SecretForm("vault token of old releases", "X-Vault-Token: {}", "s.<w24>"),
    SecretForm("kubernetes service account token", "token: {}", "<jwt>"),
    SecretForm("kubernetes token in a log line", "Unauthorized: {} has expired", "<jwt>"),
    SecretForm("terraform cloud token", "terraform login stored {}", "<w14>.atlasv1.<s67>"),
    SecretForm("shopify token", "shopify {} throttled", "shpat_<h32>"),
    SecretForm("square token", "square: {}", "sq0atp-<s22>"),
    SecretForm("pulumi token", "pulumi login {}", "pul-<h40>"),
    SecretForm("dynatrace token", "dynatrace ingest 401 {}", "dt0c01.<u24>.<u64>"),
    SecretForm("sentry user token", "sentry-cli {}", "sntryu_<h64>"),
    SecretForm("postman key", "newman run {}", "PMAK-<h24>-<h34>"),
    SecretForm("mailgun key", "mailgun: {} forbidden", "key-<h32>"),
    SecretForm("linear key", "linear 401 {}", "lin_api_<w40>"),
    SecretForm("planetscale password", "pscale: {} is not valid", "pscale_pw_<s43>"),
    SecretForm("doppler token", "doppler run {}", "dp.pt.<w43>"),
    SecretForm("telegram bot token", "GET https://api.telegram.org/bot{}/sendMessage 200", "<d10>:AA<s33>"),
    SecretForm("docker hub token", "docker login -u acme -p {}", "dckr_pat_<s27>"),
    SecretForm("atlassian token", "jira 401 for {}", "ATATT3<s186>"),
    SecretForm("artifactory key", "jfrog rt ping {}", "AKCp<w69>"),
    SecretForm("age secret key", "sops: decrypting with {}", "AGE-SECRET-KEY-1<u58>"),
]

# Settings as the vendors' documents spell them.
SETTINGS = [
    SecretForm("mysql option", "mysql --host=db --user=shop --password={} shop"),
    SecretForm("mysql short option", "mysqldump -h db -u shop -p{} shop"),
    SecretForm("mysql.cnf", "[client]\nuser=shop\npassword={}\nhost=db"),
    SecretForm("mysql identified by", "CREATE USER 'shop'@'%' IDENTIFIED BY '{}';"),
    SecretForm("postgres role", "ALTER ROLE shop WITH LOGIN PASSWORD '{}';"),
    SecretForm("postgres conninfo", "host=db port=5432 dbname=shop user=shop password={} sslmode=require"),
    SecretForm("postgres environment", "PGPASSWORD={} psql -h db -U shop"),
    SecretForm("pgpass", "db.shop.svc:5432:shop:shop:{}"),
    SecretForm("redis configuration", "requirepass {}"),
    SecretForm("redis replica", "masterauth {}"),
    SecretForm("redis-cli", "redis-cli -h cache -a {} ping"),
    SecretForm("redis url without user", "redis://:{}@cache:6379/0"),
    SecretForm("mongodb url", "mongodb+srv://shop:{}@cluster0.mongodb.net/shop?retryWrites=true"),
    SecretForm("amqp url", "amqp connection amqps://shop:{}@mq:5671/%2f refused"),
    SecretForm("jdbc url", "jdbc:postgresql://db:5432/shop?user=shop&password={}&ssl=true"),
    SecretForm(
        "jdbc sqlserver", "jdbc:sqlserver://db:1433;databaseName=shop;user=sa;password={};encrypt=true"
    ),
    SecretForm("oracle thin", "jdbc:oracle:thin:scott/{}@//db:1521/ORCL"),
    SecretForm("ado.net", "Server=tcp:db,1433;Database=shop;User ID=sa;Password={};Encrypt=True;"),
    SecretForm("ado.net short", "Server=db;Database=shop;Uid=sa;Pwd={};"),
    SecretForm("curl user", "curl -u admin:{} https://es:9200/_cluster/health"),
    SecretForm("curl basic header", "curl -H 'Authorization: Basic {}' https://api", "<pw>", _basic),
    SecretForm("wget", "wget --http-user=a --http-password={} https://x"),
    SecretForm("sshpass", "sshpass -p {} ssh root@db"),
    SecretForm("netrc", "machine api.heroku.com\n  login a@b.c\n  password {}"),
    SecretForm("docker config", '{"auths":{"registry.acme.io":{"auth":"{}"}}}', "<pw>", _basic),
    SecretForm("kubectl secret", "kubectl create secret generic db --from-literal=password={}"),
    SecretForm(
        "kubernetes Secret manifest",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  dsn: {}\n",
        "<pw>",
        _base64,
    ),
    SecretForm("kubernetes env entry", '{"name":"DB_PASSWORD","value":"{}"}'),
    SecretForm("kubeconfig key data", "    client-key-data: {}", "<b400>=="),
    SecretForm("rails key base", "SECRET_KEY_BASE={}", "<h128>"),
    SecretForm("rails yaml", "production:\n  secret_key_base: {}", "<h128>"),
    SecretForm("django", "SECRET_KEY = 'django-insecure-{}'", "<w50>"),
    SecretForm("spring properties", "spring.datasource.password={}"),
    SecretForm(
        "maven settings", "<server><id>nexus</id><username>ci</username><password>{}</password></server>"
    ),
    SecretForm("web.config", '<add key="SmtpPassword" value="{}" />'),
    SecretForm("nuget", '<add key="ClearTextPassword" value="{}" />'),
    SecretForm("tomcat users", '<user username="tomcat" password="{}" roles="manager-gui"/>'),
    SecretForm("prometheus basic auth", "basic_auth:\n  username: prom\n  password: {}"),
    SecretForm("alertmanager pagerduty", "pagerduty_configs:\n- routing_key: {}", "<h32>"),
    SecretForm("opsgenie", "Authorization: GenieKey {}", "<uuid>"),
    SecretForm("grafana datasource", "secureJsonData:\n  basicAuthPassword: {}"),
    SecretForm("php array", "'password' => '{}',"),
    SecretForm("ruby hash", ':password=>"{}"'),
    SecretForm("go map", "map[host:db password:{} user:shop]"),
    SecretForm(
        "aws credentials file",
        "[default]\naws_access_key_id = AKIA<u16>\naws_secret_access_key = {}",
        "<b40>",
    ),
    SecretForm(
        "s3 presigned",
        "GET /b/o?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA<u16>%2F20260101&X-Amz-Signature={}",
        "<h64>",
    ),
    SecretForm("private key", "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", "<pem>"),
    SecretForm(
        "private key in JSON",
        r'"private_key": "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n"',
        "<b64>",
    ),
]

VENDOR_FORMS = [*TOKENS, *SETTINGS]

"""Secrets that no name announces: in stack traces, tables, links and DSNs, in wrapped values, after words of other languages."""

from planted_secrets import SecretForm


def _wide(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


POSITIONAL_FORMS = [
    # --- arguments of calls
    SecretForm("php pdo trace", "#0 /srv/app/db.php(31): PDO->__construct('mysql:host=db1;d...', 'shop', '{}')"),
    SecretForm("php driver trace", "#2 Connection.php(356): Doctrine\\DBAL\\Driver\\PDOMySql\\Driver->connect(Array, 'acme000', '{}', Array)"),
    SecretForm("php mysqli trace", "#1 /srv/x.php(9): mysqli_connect('db1', 'shop', '{}', 'orders')"),
    SecretForm("php real_connect", "mysqli->real_connect('10.0.0.4', 'shop', '{}', NULL, 3306)"),
    SecretForm("php ldap trace", "#4 ldap.php(12): ldap_bind(Resource id #12, 'cn=svc,dc=acme', '{}')"),
    SecretForm("php ftp trace", "#4 sync.php(7): ftp_login(Resource id #3, 'mirror', '{}')"),
    SecretForm("java driver manager", 'at DriverManager.getConnection("jdbc:mysql://db/orders", "shop", "{}")'),
    SecretForm("perl connect", "DBI connect('database=orders;host=db1','shop','{}',...) failed: timed out"),
    SecretForm("smtplib login", "    server.login('noreply@example.com', '{}')"),
    SecretForm("client authenticate", 'client.authenticate("svc", "{}")'),
    SecretForm("php trace in json", '{"trace":"#0 db.php(3): PDO->__construct(\'mysql:host=a\', \'shop\', \'{}\')"}'),
    # --- columns
    SecretForm("markdown table", "| user | password |\n|------|----------|\n| svc  | {} |"),
    SecretForm("csv", "host,user,password,port\ndb1,app,{},5432\n"),
    SecretForm("csv second row", "user,api_key\nops,none\nsvc,{}\n", "<w32>"),
    SecretForm("tsv", "id\tname\tpasswd\n1\tsvc\t{}\n"),
    SecretForm("psql rows", " name | password | since\n------+----------+-------\n svc  | {} | 2024\n(1 row)"),
    SecretForm("mysql rows", "+----+------+\n| id | client_secret |\n+----+------+\n| 7 | {} |\n+----+------+"),
    SecretForm("semicolons", 'user;password\n"svc";"{}"\n'),
    # --- links, DSNs, addresses
    SecretForm("reset link", "GET /users/password/reset/{} 200", "a7<w38>"),
    SecretForm("magic link", "mailed https://shop.example.com/magic-link/{}", "b4<s40>"),
    SecretForm("invitation", "POST /invitations/{} 410", "k9<w30>"),
    SecretForm("go mysql dsn", "dial failed: app:{}@tcp(db-1:3306)/orders?parseTime=true"),
    SecretForm("go unix dsn", "cannot open app:{}@unix(/run/mysqld/mysqld.sock)/orders"),
    SecretForm("token as user", "remote: https://{}@git.example.com/shop/orders.git", "t3<w20>"),
    SecretForm("bot address", "POST https://api.telegram.org/bot{}/sendMessage", "<d10>:<s35>"),
    SecretForm("query appid", "GET /data/2.5/weather?q=Oslo&appid={}", "a1<h30>"),
    # --- pairs with the value first
    SecretForm("ecs task", '{"environment":[{"value":"{}","name":"DB_PASSWORD"}]}'),
    SecretForm("ecs task in json", '{"log":"{\\"value\\":\\"{}\\",\\"name\\":\\"DB_PASSWORD\\"}"}'),
    SecretForm("yaml value first", "env:\n- value: {}\n  name: REDIS_PASSWORD"),
    # --- wrapped values
    SecretForm("python bytes", "connect(password=b'{}')"),
    SecretForm("python unicode", "{u'password': u'{}'}"),
    SecretForm("national string", "CREATE LOGIN app WITH PASSWORD = N'{}', DEFAULT_DATABASE=shop"),
    SecretForm("rust some", 'Config { user: "app", password: Some("{}"), port: 5432 }'),
    SecretForm("rust secret", 'Config { password: Secret("{}") }'),
    SecretForm("haskell just", 'Config {password = Just "{}"}'),
    SecretForm("scala some", 'AppConfig(password = Some("{}"))'),
    SecretForm("erlang binary", '{rabbit,[{default_user,<<"svc">>},{default_pass,<<"{}">>}]}'),
    SecretForm("elixir map", '%{password: "{}", username: "svc"}'),
    SecretForm("lisp keyword", '(:user "svc" :password "{}")'),
    # --- headers with parameters
    SecretForm("digest header", 'Authorization: Digest username="ops", realm="x", uri="/", response="{}"', "<h32>"),
    SecretForm("oauth1 header", 'Authorization: OAuth oauth_consumer_key="k", oauth_token="t", oauth_signature="{}"', "<w28>"),
    SecretForm("hawk header", 'Authorization: Hawk id="dh37", ts="1353832234", mac="{}"', "<b43>="),
    # --- configuration without a sign
    SecretForm("masterauth quoted", 'masterauth "{}"'),
    SecretForm("snmpd", "rocommunity {} 10.0.0.0/8"),
    SecretForm("powershell secure string", '(ConvertTo-SecureString "{}" -AsPlainText -Force)'),
    SecretForm("wordpress key", "define('LOGGED_IN_KEY',    '{}');", "<w64>"),
    SecretForm("cookie salt", "COOKIE_SALT={}", "f1<h38>"),
    SecretForm("snmp community in env", "SNMP_COMMUNITY={}", "p2<w30>"),
    SecretForm("sonar login", "-Dsonar.login={} -Dsonar.host.url=https://sonar", "4e<h38>"),
    SecretForm("dotted settings", "HikariConfig - password........................{}"),
    SecretForm("fernet key", "AIRFLOW__CORE__FERNET_KEY={}", "<b43>="),
    SecretForm("ftp", "> USER mirror\n> PASS {}"),
    SecretForm("smtp plain", "C: AUTH PLAIN {}", "<b32>"),
    SecretForm("saml response", "SAMLResponse={}&RelayState=x", "<b400>"),
    # --- prose
    SecretForm("in parentheses", "connecting (password {})", "aB3<w12>"),
    SecretForm("with password", 'login failed for user "svc" with password "{}"'),
    SecretForm("password in a sentence", "bind to dc1 as CN=svc with password {} failed: 49", "aB3<w12>"),
    SecretForm("pwd for", "pwd for svc = {}", "aB3<w12>"),
    SecretForm("next line", "Password:\n  {}"),
    SecretForm("verification code", "Your verification code is {}.", "<d6>"),
    SecretForm("otp", "sms sent: OTP={}", "<d6>"),
    # --- other languages and widths
    SecretForm("chinese", "数据库密码：{}"),
    SecretForm("chinese traditional", "密碼: {}"),
    SecretForm("japanese", "パスワード={}"),
    SecretForm("korean", "비밀번호: {}"),
    SecretForm("russian", "пароль: {}"),
    SecretForm("french", "mot de passe : {}"),
    SecretForm("german kennwort", "Kennwort={}"),
    SecretForm("portuguese", "senha: {}"),
    SecretForm("dutch", "wachtwoord={}"),
    SecretForm("full width name", _wide("password:") + "{}"),
    SecretForm("full width value", "password={}", "aB3<w12>", _wide),
]  # fmt: skip
"""Kinds that were missed by texts from logs, shells and clients of databases."""

"""Tokens in the shapes that their vendors publish, and addresses that are a secret as a whole.

A shape is looked for where its fixed letters stand, and not in the middle of a word.
"""

import re
from collections.abc import Iterator

from opsleuth.redaction.secret_patterns import FoundSecret, compile_regex, find_literals

# Kind, the letters they begin with, and what they are from there on.
_SHAPES: tuple[tuple[str, tuple[str, ...], str], ...] = tuple(
    (kind, tuple(marks.split()), pattern)
    for kind, marks, pattern in (
        ("jwt", "eyJ", r"[\w-]{11,600}+\.[\w-]{8,}+(?:\.[\w-]*+)*+"),
        ("github-token", "ghp_ gho_ ghr_ ghs_ ghu_ github_pat_", r"\w{24,}+"),
        ("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glrtr- glwt-", r"[\w.-]{25,}+"),
        ("gitlab-token", "GR1348941", r"[\w-]{25,}+"),
        ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe.xox xoxo- xoxp- xoxr- xoxs- xapp-", r"[\w.-]{15,}+"),
        ("aws-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{20}(?![A-Za-z0-9])"),
        ("aws-key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,}+={0,2}"),
        ("aws-key", "bedrock-api-key-", r"[\w-]{30,}+"),
        ("aws-key", "amzn.mws.", r"amzn\.mws\.[0-9a-f-]{36}"),
        ("aws-key", "da2-", r"da2-[a-z0-9]{26}(?!\w)"),
        ("google-key", "AIza GOCSPX-", r"[\w-]{28,}+"),
        ("google-key", "ya29.", r"ya29\.[\w-]{20,}+"),
        ("google-key", "1//0", r"1//0[\w-]{40,}+"),
        ("alibaba-key", "LTAI", r"LTAI[A-Za-z0-9]{12,20}(?!\w)"),
        ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sk_prod_ rk_prod_", r"\w{22,}+"),
        ("payment-key", "sq0atp- sq0csp- sq0idp-", r"[\w-]{29,}+"),
        ("payment-key", "EAAA", r"EAAA[\w-]{56,}+"),
        ("payment-key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}(?!\w)"),
        ("payment-key", "FLWSECK", r"FLWSECK[\w-]{12,}+"),
        ("payment-key", "duffel_live_ duffel_test_ shippo_live_ shippo_test_", r"[\w=-]{40,}+"),
        ("model-key", "sk-", r"(?=[\w-]{0,200}[A-Z])(?=[\w-]{0,200}\d)[\w-]{23,}+"),
        ("model-key", "hf_ gsk_ api_org_", r"\w{33,}+"),
        ("model-key", "pplx- xai-", r"[\w-]{40,}+"),
        ("model-key", "r8_", r"r8_[A-Za-z0-9]{37}(?!\w)"),
        ("registry-token", "npm_ rubygems_ CLOJARS_", r"\w{40,}+"),
        ("registry-token", "pypi-AgE dckr_pat_ dckr_oat_", r"[\w-]{29,}+"),
        ("registry-token", "AKCp", r"AKCp[A-Za-z0-9]{60,}+"),
        ("registry-token", "cmVmd", r"cmVmd[A-Za-z0-9]{59}(?!\w)"),
        ("registry-token", "oy2", r"oy2[a-z0-9]{43}(?!\w)"),
        ("mail-key", "SG.", r"SG\.[\w-]{16,100}+\.[\w-]{16,}+"),
        ("mail-key", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[0-9a-f]{64}[\w-]*+"),
        ("mail-key", "key-", r"key-[0-9a-f]{32}(?![\w-])"),
        ("telephony-key", "SK", r"SK[0-9a-f]{32}(?!\w)"),
        ("vault-token", "hvs. hvb. hvr.", r"hv[bsr]\.[\w-]{20,}+"),
        ("vault-token", "s.", r"(?=s\.\w{0,23}[0-9])(?=s\.\w{0,23}[A-Z])(?=s\.\w{0,23}[a-z])s\.[A-Za-z0-9]{24}(?![\w.(])"),
        ("cloud-token", "doo_v1_ dop_v1_ dor_v1_", r"\w{71,}+"),
        ("cloud-token", "dapi dkea", r"d(?:api|kea)[0-9a-f]{32}(?:-\d)?(?!\w)"),
        ("cloud-token", "shpat_ shpca_ shppa_ shpss_ shprka_", r"\w{38,}+"),
        ("cloud-token", "HRKU-", r"HRKU-[\w-]{30,}+"),
        ("cloud-token", "pul-", r"pul-[0-9a-f]{40}(?!\w)"),
        ("cloud-token", "fo1_ fm1r_ fm1a_ fm2_", r"fo1_[\w-]{43}|fm\w{1,2}_[A-Za-z0-9+/=]{60,}+"),
        ("cloud-token", "vercel_blob_rw_ vcp_ vci_ vca_ vcr_ vck_", r"\w{24,}+"),
        ("cloud-token", "sbp_ sb_secret_ sbp_v0_", r"[\w-]{30,}+"),
        ("cloud-token", "tskey-", r"tskey-[\w-]{20,}+"),
        ("cloud-token", "rnd_ railway_", r"\w{30,}+"),
        ("cloud-token", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
        ("cloud-token", "tk-us-", r"tk-us-[\w-]{48}"),
        ("cloud-token", "t1.", r"t1\.[\w-]{20,}+={0,2}\.[\w-]{86}={0,2}"),
        ("cloud-token", "AQVN", r"AQVN[\w-]{35,38}"),
        ("cloud-token", "sha256~", r"sha256~[\w-]{43}(?![\w-])"),
        ("database-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.=-]{40,}+"),
        ("database-token", "4b1d", r"(?=[0-9a-f]{0,41}[A-Zg-z])4b1d[A-Za-z0-9]{38}(?!\w)"),
        ("monitoring-key", "glsa_ glc_ sntrys_ sntryu_", r"[\w=+/-]{34,}+"),
        ("monitoring-key", "NRAK- NRII- NRJS- NRRA- NRIQ- NRSP-", r"NR[A-Z]{2}-[\w-]{19,}+"),
        ("monitoring-key", "eyJrIjoi", r"eyJrIjoi[A-Za-z0-9+/_-]{40,}+={0,2}"),
        ("monitoring-key", "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.", r"dt0[a-z]\d{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
        ("monitoring-key", "ddp_ ddapp_ hcaik_ hcxik_ hcalk_", r"\w{34,}+"),
        ("monitoring-key", "PMAK- phc_ phx_", r"[\w-]{35,}+"),
        ("ci-token", "bkua_ bkaj_ bkct_ CCIPAT_ CCIPRJ_ ATCTT3 ATATT3 ATBB ATSTT3", r"[\w=-]{32,}+"),
        ("ci-token", "lin_api_ lin_oauth_ figd_ figo_ tfp_ ntn_ pnu_ pnb_ rdme_ sgp_ fio-u- p8e-", r"(?=[\w.=-]{0,80}\d)[\w.=-]{29,}+"),
        ("ci-token", "squ_ sqp_ sqa_ dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. infp_ sm_aat_ sm_pat_ sm_sat_", r"(?=[\w.=-]{0,80}\d)[\w.-]{23,}+"),
        ("ci-token", "secret_", r"secret_[A-Za-z0-9]{43}(?!\w)"),
        ("ci-token", "API-", r"API-[A-Z0-9]{26}(?!\w)"),
        ("ci-token", "ico-", r"ico-[A-Za-z0-9]{32}(?!\w)"),
        ("ci-token", "pat. sat.", r"[ps]at\.[\w-]{22}\.[\w]{24}\.[\w]{20}"),
        ("ci-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
        ("ci-token", "ops_eyJ", r"ops_eyJ[\w+/=-]{40,}+"),
        ("ci-token", "A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?!\w)"),
        ("chat-token", "EAAC EAAM EAAG EAAB", r"EAA[A-Z][A-Za-z0-9]{80,}+"),
        ("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9-]{56,}+"),
    )
)  # fmt: skip
_INSIDE: tuple[tuple[str, str, str], ...] = (
    ("azure-secret", "Q~", r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    ("cloud-token", ".atlasv1.", r"(?<![\w.-])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}+"),
    ("chat-token", ":AA", r"(?<![0-9])[0-9]{8,12}:AA[\w-]{30,}+"),
    ("monitoring-key", "NRAL", r"(?<!\w)[0-9a-f]{36}NRAL(?!\w)"),
    ("mail-key", "-us", r"(?<!\w)[0-9a-f]{32}-us[0-9]{1,2}(?!\w)"),
    ("map-key", "_mmk", r"(?<!\w)[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)"),
)
"""Shapes whose fixed letters stand inside: kind, the letters, the whole."""
_REACH = 40
"""Characters before the fixed letters of such a shape."""

_ADDRESSES = {
    "hooks.slack.com/": r"(?:services|workflows|triggers)/(?P<value>[\w+/-]{20,}+)",
    "/api/webhooks/": r"(?P<value>[0-9]{10,}/[\w-]{30,}+)",
    ".webhook.office.com/": r"(?:webhookb2/)?(?P<value>[\w@/-]{30,}+)",
    "outlook.office.com/": r"webhook/(?P<value>[\w@/-]{30,}+)",
    "hooks.zapier.com/": r"hooks/catch/(?P<value>[\w/-]{8,}+)",
    "maker.ifttt.com/": r"trigger/[\w-]{1,60}/(?:json/)?with/key/(?P<value>[\w-]{16,}+)",
    "alert.victorops.com/": r"integrations/generic/\d{1,20}/alert/(?P<value>[\w/-]{16,}+)",
    "api.telegram.org/": r"(?:file/)?bot(?P<value>[0-9]{6,12}:[\w-]{30,}+)",
    "otpauth://": r"[^\s?]{0,200}\?(?:[^\s&]{0,100}&)*?secret=(?P<value>[A-Za-z2-7]{8,}+)",
}
"""Addresses that work for whoever knows them: the fixed letters, and what follows."""

_BY_LETTER: dict[str, list[tuple[str, str, str]]] = {}
for _kind, _marks, _pattern in _SHAPES:
    for _mark in _marks:
        _BY_LETTER.setdefault(_mark[0], []).append((_mark, _kind, _pattern))

_MARK = (
    "(?<![A-Za-z0-9])(?:"
    + "|".join(
        f"{letter}(?:{'|'.join(re.escape(mark[1:]) for mark, _, _ in shapes)})"
        for letter, shapes in _BY_LETTER.items()
    )
    + ")"
)
"""Where a token may begin; grouped by the first letter, which is what keeps the search fast."""

_AWS_KEY = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_AWS_SECRET = re.compile(
    r"(?<![A-Za-z0-9+/=])(?=[^a-z]{0,39}[a-z])(?=[^A-Z]{0,39}[A-Z])(?=[^0-9+/]{0,39}[0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
)
_AWS_JOINED = re.compile(r"[/:](?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])")
_BESIDE = 400
"""Characters between the id of an AWS key and its secret, at most."""


def may_hold_tokens(text: str) -> bool:
    """Whether `find_tokens` may find something."""
    inside = any(mark in text for _, mark, _ in _INSIDE) or any(mark in text for mark in _ADDRESSES)
    return inside or compile_regex(_MARK).search(text) is not None


def find_tokens(text: str) -> Iterator[FoundSecret]:
    """Tokens of published shapes that do not appear in the middle of a word."""
    done = 0
    for hit in compile_regex(_MARK).finditer(text):
        at = hit.start()
        if at < done:
            continue
        for mark, kind, pattern in _BY_LETTER[text[at]]:
            match = compile_regex(pattern).match(text, at) if text.startswith(mark, at) else None
            if match:
                done = match.end()
                yield FoundSecret(at, done, kind)
                break
    yield from _find_shapes_around(text)
    yield from _find_addresses(text)


def find_aws_secrets(text: str) -> Iterator[FoundSecret]:
    """The secret of an AWS key that stands near its id; the id itself is a token."""
    done = 0
    for key in _AWS_KEY.finditer(text):
        start, end = max(done, key.start() - _BESIDE), key.end() + _BESIDE
        for secret in _AWS_SECRET.finditer(text, start, min(end + 40, len(text))):
            yield FoundSecret(*secret.span(), "aws-secret")
        done = max(done, end)
        if joined := _AWS_JOINED.match(text, key.end()):
            yield FoundSecret(*joined.span("value"), "aws-secret")


def _find_shapes_around(text: str) -> Iterator[FoundSecret]:
    for kind, mark, pattern in _INSIDE:
        done = 0
        for at, _ in find_literals(text, (mark,)):
            match = (
                compile_regex(pattern).search(text, max(done, at - _REACH), at + 200) if at >= done else None
            )
            if match:
                done = match.end()
                yield FoundSecret(*match.span(), kind)


def _find_addresses(text: str) -> Iterator[FoundSecret]:
    for mark, pattern in _ADDRESSES.items():
        for at, _ in find_literals(text, (mark,)):
            if match := compile_regex(pattern).match(text, at + len(mark)):
                yield FoundSecret(*match.span("value"), "address-token")

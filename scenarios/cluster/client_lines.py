"""What a caller writes when a call fails, by the way it fails, in the words of its own client library."""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

Line = Callable[[Random, "FailedCall"], str]


class FailedCall(NamedTuple):
    """One failed call: whom, where it went, and to which port."""

    callee: str
    namespace: str
    address: str
    port: int


# Way of failing: milliseconds until the caller knows.
WAITS: Mapping[str, float] = {
    "refused": 2.0,
    "no_endpoints": 3.0,
    "timeout": 5000.0,
    "reset": 12.0,
    "no_such_host": 15.0,
    "dns_timeout": 5000.0,
    "tls": 20.0,
    "forbidden": 4.0,
    "no_route": 3.0,
    "overflow": 1.0,
    "unimplemented": 4.0,
}

_GO: Mapping[str, Line] = {
    "refused": lambda _, c: f'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp {c.address}:{c.port}: connect: connection refused"',
    "no_endpoints": lambda _, c: f'Get "http://{c.callee}:{c.port}/": dial tcp {c.address}:{c.port}: connect: connection refused',
    "timeout": lambda r, c: r.choice((
        f"rpc error: code = DeadlineExceeded desc = context deadline exceeded (peer {c.callee}:{c.port})",
        f'Post "http://{c.callee}.{c.namespace}.svc.cluster.local:{c.port}/": dial tcp {c.address}:{c.port}: i/o timeout',
    )),
    "reset": lambda _, c: f"read tcp 10.244.3.17:41822->{c.address}:{c.port}: read: connection reset by peer",
    "no_such_host": lambda _, c: f"dial tcp: lookup {c.callee}.{c.namespace}.svc.cluster.local on 10.96.0.10:53: no such host",
    "dns_timeout": lambda r, c: f"dial tcp: lookup {c.callee} on 10.96.0.10:53: read udp 10.244.3.17:{r.randrange(32000, 60000)}->10.96.0.10:53: i/o timeout",
    "tls": lambda _, c: f"remote error: tls: bad certificate while calling {c.callee}:{c.port}",
    "forbidden": lambda _, c: f"rpc error: code = PermissionDenied desc = RBAC: access denied ({c.callee}:{c.port})",
    "no_route": lambda _, c: f'unexpected HTTP status code received from server {c.callee}: 503 (Service Unavailable); transport: received unexpected content-type "text/plain"',
    "overflow": lambda _, c: f"rpc error: code = Unavailable desc = upstream connect error or disconnect/reset before headers. reset reason: overflow ({c.callee})",
    "unimplemented": lambda _, c: f"rpc error: code = Unimplemented desc = unknown service on {c.callee}:{c.port}",
}  # fmt: skip
_JVM: Mapping[str, Line] = {
    "refused": lambda _, c: f"io.grpc.StatusRuntimeException: UNAVAILABLE: io exception\nCaused by: java.net.ConnectException: Connection refused: {c.callee}/{c.address}:{c.port}",
    "no_endpoints": lambda _, c: f'org.springframework.web.client.ResourceAccessException: I/O error on GET request for "http://{c.callee}:{c.port}": Connection refused',
    "timeout": lambda r, c: r.choice((
        f"io.grpc.StatusRuntimeException: DEADLINE_EXCEEDED: deadline exceeded after 4.99s. remote_addr={c.callee}/{c.address}:{c.port}",
        f"java.net.SocketTimeoutException: Connect timed out: {c.callee}/{c.address}:{c.port}",
    )),
    "reset": lambda _, c: f"java.net.SocketException: Connection reset while reading from {c.callee}:{c.port}",
    "no_such_host": lambda _, c: f"java.net.UnknownHostException: {c.callee}: Name or service not known",
    "dns_timeout": lambda _, c: f"java.net.UnknownHostException: {c.callee}: Temporary failure in name resolution",
    "tls": lambda _, c: f"javax.net.ssl.SSLHandshakeException: Remote host {c.callee}:{c.port} terminated the handshake",
    "forbidden": lambda _, c: f'org.springframework.web.client.HttpClientErrorException$Forbidden: 403 Forbidden on GET request for "http://{c.callee}:{c.port}": "RBAC: access denied"',
    "no_route": lambda _, c: f'org.springframework.web.client.HttpServerErrorException$ServiceUnavailable: 503 Service Unavailable on GET request for "http://{c.callee}:{c.port}": [no body]',
    "overflow": lambda _, c: f'HttpServerErrorException$ServiceUnavailable: 503 Service Unavailable from {c.callee}: "upstream connect error or disconnect/reset before headers. reset reason: overflow"',
    "unimplemented": lambda _, c: f"io.grpc.StatusRuntimeException: UNIMPLEMENTED: unknown service, remote {c.callee}:{c.port}",
}  # fmt: skip
_PYTHON: Mapping[str, Line] = {
    "refused": lambda _, c: f"grpc._channel._InactiveRpcError: StatusCode.UNAVAILABLE failed to connect to all addresses; last error: UNKNOWN: ipv4:{c.address}:{c.port}: Failed to connect to remote host: connect: Connection refused (111)",
    "no_endpoints": lambda _, c: f"requests.exceptions.ConnectionError: HTTPConnectionPool(host='{c.callee}', port={c.port}): Max retries exceeded (Caused by NewConnectionError(': Failed to establish a new connection: [Errno 111] Connection refused'))",
    "timeout": lambda _, c: f"requests.exceptions.ConnectTimeout: HTTPConnectionPool(host='{c.callee}', port={c.port}): Max retries exceeded (Caused by ConnectTimeoutError('Connection to {c.callee} timed out. (connect timeout=5)'))",
    "reset": lambda _, c: f"requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer')) host={c.callee}:{c.port}",
    "no_such_host": lambda _, c: f"socket.gaierror: [Errno -2] Name or service not known: '{c.callee}'",
    "dns_timeout": lambda _, c: f"socket.gaierror: [Errno -3] Temporary failure in name resolution: '{c.callee}'",
    "tls": lambda _, c: f"ssl.SSLError: [SSL: SSLV3_ALERT_CERTIFICATE_UNKNOWN] calling {c.callee}:{c.port}",
    "forbidden": lambda _, c: f"requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: http://{c.callee}:{c.port}/ body='RBAC: access denied'",
    "no_route": lambda _, c: f"requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: http://{c.callee}:{c.port}/",
    "overflow": lambda _, c: f"503 from {c.callee}:{c.port}: upstream connect error or disconnect/reset before headers. reset reason: overflow",
    "unimplemented": lambda _, c: f"requests.exceptions.HTTPError: 404 Client Error: Not Found for url: http://{c.callee}:{c.port}/",
}  # fmt: skip
_NODE: Mapping[str, Line] = {
    "refused": lambda _, c: f"Error: 14 UNAVAILABLE: No connection established. Last error: connect ECONNREFUSED {c.address}:{c.port}",
    "no_endpoints": lambda _, c: f"AxiosError: connect ECONNREFUSED {c.address}:{c.port} (http://{c.callee}:{c.port})",
    "timeout": lambda _, c: f"Error: 14 UNAVAILABLE: No connection established. Last error: connect ETIMEDOUT {c.address}:{c.port}",
    "reset": lambda _, c: f"Error: read ECONNRESET at TLSWrap.onStreamRead host={c.callee}:{c.port}",
    "no_such_host": lambda _, c: f"Error: getaddrinfo ENOTFOUND {c.callee}",
    "dns_timeout": lambda _, c: f"Error: getaddrinfo EAI_AGAIN {c.callee}",
    "tls": lambda _, c: f"Error: write EPROTO ssl3_read_bytes:sslv3 alert certificate unknown host={c.callee}:{c.port}",
    "forbidden": lambda _, c: f"Error: 7 PERMISSION_DENIED: RBAC: access denied ({c.callee}:{c.port})",
    "no_route": lambda _, c: f"AxiosError: Request failed with status code 503 (http://{c.callee}:{c.port})",
    "overflow": lambda _, c: f"AxiosError: Request failed with status code 503 (http://{c.callee}:{c.port}): reset reason: overflow",
    "unimplemented": lambda _, c: f"Error: 12 UNIMPLEMENTED: unknown service ({c.callee}:{c.port})",
}  # fmt: skip
# A caller in the mesh sees its own proxy's answer: HTTP status, response flags, details.
_ENVOY: Mapping[str, str] = {
    "refused": '503 UF,URX upstream_reset_before_response_started{{remote_connection_failure,delayed_connect_error:_111}} - "delayed connect error: 111" 0 152',
    "no_endpoints": '503 UH no_healthy_upstream - "-" 0 19',
    "timeout": '503 UF,URX upstream_reset_before_response_started{{connection_timeout}} - "-" 0 91',
    "reset": '503 UC upstream_reset_before_response_started{{connection_termination}} - "-" 0 95',
    "tls": '503 UF,URX upstream_reset_before_response_started{{remote_connection_failure|TLS_error:|268435703:SSL_routines:OPENSSL_internal:WRONG_VERSION_NUMBER:TLS_error_end}} - "-" 0 190',
    "forbidden": '403 - via_upstream - "-" 0 19',
    "no_route": '503 NC cluster_not_found - "-" 0 0',
    "overflow": '503 UO upstream_reset_before_response_started{{overflow}} - "-" 0 81',
}
LINES: Mapping[str, Mapping[str, Line]] = {"go": _GO, "jvm": _JVM, "python": _PYTHON, "node": _NODE}
LEVELS: Mapping[str, str] = {"go": "error", "jvm": "ERROR", "python": "ERROR", "node": "error"}


def write_failure(runtime: str, way: str, random: Random, call: FailedCall) -> str:
    """The message of a caller with this runtime, for a call that failed this way."""
    return LINES.get(runtime, _GO)[way](random, call)


def write_proxy_line(way: str, random: Random, call: FailedCall) -> str | None:
    """The access log of the caller's sidecar for the same call; None where it never saw it."""
    if way not in _ENVOY:
        return None
    target = f"{call.address}:{call.port}" if way not in {"no_endpoints", "no_route"} else "-"
    host = f"{call.callee}.{call.namespace}.svc.cluster.local"
    outcome = _ENVOY[way].replace("{{", "{").replace("}}", "}")
    return f'"POST /v1/items HTTP/1.1" {outcome} {random.randrange(1, 12)} - "-" "{call.callee}:{call.port}" "{target}" outbound|{call.port}||{host} - {call.address}:{call.port} 10.244.3.17:{random.randrange(32000, 60000)} - default'

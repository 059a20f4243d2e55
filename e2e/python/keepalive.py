"""Python's http.client and a raw socket against the gateway: keepalive.py PORT.

The upstream answers every request with its request line and body, but
/none with 204 and /chunked in chunks. An assertion that fails ends it
with a non-zero exit code and the reason.
"""

import http.client
import socket
import sys

PORT = int(sys.argv[1])


def equal(got, want, what):
    if got != want:
        sys.exit(f"{what}: got {got!r}, want {want!r}")


def one_connection():
    """Many exchanges of all kinds, one TCP connection."""
    conn = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    conn.connect()
    sock = conn.sock

    def ask(method, path, body=None, headers=None, encode_chunked=False):
        conn.request(method, path, body=body, headers=headers or {}, encode_chunked=encode_chunked)
        answer = conn.getresponse()
        content = answer.read()
        if conn.sock is not sock:
            sys.exit(f"{method} {path}: the connection did not stay")
        return answer.status, content

    for n in range(50):
        equal(ask("GET", f"/get?n={n}"), (200, f"GET /get?n={n} HTTP/1.1\n".encode()), "GET")
        equal(ask("POST", "/post", b"x" * n), (200, b"POST /post HTTP/1.1\n" + b"x" * n), "POST")
        equal(ask("HEAD", "/head"), (200, b""), "HEAD")
        equal(ask("DELETE", "/none"), (204, b""), "204")
        equal(ask("GET", "/chunked"), (200, b"one two three"), "chunked answer")
        pieces = iter([b"first ", b"second"])
        equal(
            ask("PUT", "/put", pieces, {"Transfer-Encoding": "chunked"}, encode_chunked=True),
            (200, b"PUT /put HTTP/1.1\nfirst second"),
            "chunked request",
        )
    conn.close()


def pipelined():
    """Requests sent in one write, answers in the same order."""
    requests, want = b"", []
    for n in range(20):
        requests += b"GET /a?n=%d HTTP/1.1\r\nHost: x\r\n\r\n" % n
        want.append((200, b"GET /a?n=%d HTTP/1.1\n" % n))
        requests += b"POST /b?n=%d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" % n
        want.append((200, b"POST /b?n=%d HTTP/1.1\nabc" % n))
        requests += b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n"
        want.append((200, b"POST /c HTTP/1.1\ndef"))
        requests += b"DELETE /none HTTP/1.1\r\nHost: x\r\n\r\n"
        want.append((204, b""))
    requests += b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    want.append((200, b"GET /last HTTP/1.1\n"))

    sock = socket.create_connection(("127.0.0.1", PORT), timeout=10)
    sock.sendall(requests)
    answers = sock.makefile("rb")
    for n, expected in enumerate(want):
        equal(read_answer(answers), expected, f"pipelined answer {n}")
    equal(answers.read(), b"", "after the last answer")
    sock.close()


def read_answer(stream):
    status = int(stream.readline().split()[1])
    headers = http.client.parse_headers(stream)
    if headers.get("Transfer-Encoding"):
        sys.exit(f"unexpected Transfer-Encoding {headers['Transfer-Encoding']!r}")
    return status, stream.read(int(headers.get("Content-Length", 0)))


one_connection()
pipelined()

"""Web pages as text."""

import time

import pytest

from odek.tools.html_text import readable

PAGE = """<!DOCTYPE html><html><head><title>The &amp; Title</title>
<style>p { color: red }</style><script>if (a < b) { "</p>" }</script></head>
<body><!-- hidden > --><h1>Head<b>ing</b></h1><p>First   <em>words</em>,<br>then
<a href="/x?a=1&amp;b=2">a link</a> and <a href="#here">none</a> and <a href="javascript:x()">bad</a>.</p>
<ul><li>one<li>two <ul><li>inner</li></ul></li></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2 &lt; 3</td></tr></table>
<pre><code>def f():
    return 1
</code></pre><img src=x alt="a cat"><p title="a > b">after</p> 1 < 2</body></html>"""

TEXT = """The & Title

# Heading

First words,
then a link (https://example.com/x?a=1&b=2) and none and bad.

- one
- two

- inner

a | b

1 | 2 < 3

```
def f():
    return 1
```

[image: a cat]

after

1 < 2"""


def test_page_becomes_text() -> None:
    """Title, headings, links, lists, tables and code are kept; scripts and styles are not."""
    assert readable(PAGE, "https://example.com/a/b") == TEXT


@pytest.mark.parametrize(
    "piece",
    [
        "<a ",
        "<!--",
        "<",
        "<a b='",
        '<a b="',
        "</a",
        "<script>",
        "<svg",
        "<pre>",
        "&#",
        "<li>",
        "<a href=x>",
        "</",
    ],
)
def test_malformed_pages_take_linear_time(piece: str) -> None:
    """Twice as much of any broken markup takes about twice as long, not four times."""

    def seconds(size: int) -> float:
        page = piece * (size // len(piece))
        start = time.process_time()
        readable(page, "http://x/")
        return time.process_time() - start

    assert seconds(400_000) < 3 * seconds(200_000) + 0.2

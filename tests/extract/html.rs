//! HTML.

use greenmark::extract::{Format, Note};

use crate::{read, refusal};

fn text(page: &str) -> String {
    let (text, notes) = read(Format::Html, page.as_bytes());
    assert_eq!(notes, [], "{text}");
    text
}

#[test]
fn a_page_becomes_lines() {
    let page = "<!DOCTYPE html><html><head><title>no</title><style>p{}</style>\
                <meta charset=utf-8></head><body>\n<h1>Title</h1>\n<p>One\n  two <b>bold</b>\
                <i>er</i>.</p><p>Three<br>four<br></p><ul>\n <li>a</li>\n <li>b</li></ul>\
                <ol><li>c</ol><blockquote>q</blockquote><!-- c --><div>d<div>e</div>f</div>g\
                <script>no()</script><noscript>no</noscript><template>no</template></body></html>";
    assert_eq!(text(page), "Title\n\nOne two bolder.\n\nThree\nfour\n\na\nb\nc\nq\nd\ne\nf\ng");
}

#[test]
fn white_space_collapses_outside_pre() {
    assert_eq!(text("  a \t\n b <span> c</span> <p>  d  </p> e "), "a b c\n\nd\n\ne");
    assert_eq!(text("a&nbsp; b"), "a\u{a0} b");
    assert_eq!(
        text("<p>x<pre>\n  fn a() {\n\n    b\n  }\n</pre>y"),
        "x\n\n  fn a() {\n\n    b\n  }\ny"
    );
    assert_eq!(text("a<br><br>b<br> c"), "a\n\nb\nc");
    assert_eq!(text(""), "");
    assert_eq!(text("<p></p> <br> \n"), "");
}

#[test]
fn entities_are_characters() {
    assert_eq!(
        text("&lt;p&gt; &amp;amp; &amp;lt; caf&eacute; &#8212; &#x1f600; &copy &bogus;"),
        "<p> &amp; &lt; caf\u{e9} \u{2014} \u{1f600} \u{a9} &bogus;"
    );
}

#[test]
fn tables_are_read_cell_by_cell() {
    let page = "<table><caption>t</caption><tr><th>1<th>2</tr><tr><td>3<td>4 &amp; 5</table>";
    assert_eq!(text(page), "t\n1\n2\n3\n4 & 5");
}

#[test]
fn links_pictures_and_controls_leave_no_trace() {
    let page = "see <a href=\"https://example.org\">this <em>page</em></a><img src=a alt=no>\
                <select><option>no</select><textarea>no</textarea><svg><text>no</text></svg>!";
    assert_eq!(text(page), "see this page!");
}

#[test]
fn hidden_text_and_equations_are_left_out_with_a_note() {
    let page = "a<p hidden>no</p><p HIDDEN=''>no</p><math><mi>x</mi></math>b";
    let (text, notes) = read(Format::Html, page.as_bytes());
    assert_eq!(text, "ab");
    assert_eq!(notes, [Note::HiddenTextLeftOut, Note::EquationsLeftOut]);
}

#[test]
fn another_character_set_is_refused_by_its_name() {
    let latin = b"<html><head><meta charset=\"ISO-8859-1\"></head><body>caf\xe9";
    let message = refusal(Format::Html, latin);
    assert!(message.contains("in iso-8859-1, not UTF-8"), "{message}");
    assert!(message.contains("iconv -f iso-8859-1 -t UTF-8"), "{message}");
    let older = b"<META http-equiv=Content-Type content='text/html; charset=windows-1252'>caf\xe9";
    assert!(refusal(Format::Html, older).contains("in windows-1252, not UTF-8"));
    let message = refusal(Format::Html, b"<p>caf\xe9");
    assert!(message.contains("(byte 6): not UTF-8"), "{message}");
    assert!(refusal(Format::Html, b"\xff\xfe<\0").contains("UTF-16LE"));
    // A name becomes part of a command that a reader may copy.
    let command = b"<meta charset='x; reboot'>caf\xe9";
    assert!(refusal(Format::Html, command).contains("iconv -f x -t UTF-8"));

    let converted = "<meta charset=iso-8859-1>caf\u{e9}";
    let (text, notes) = read(Format::Html, converted.as_bytes());
    assert_eq!(text, "caf\u{e9}");
    assert_eq!(notes, [Note::OtherCharset { declared: "iso-8859-1".to_owned() }]);
    assert_eq!(read(Format::Html, b"<meta charset=iso-8859-1>cafe").1, []);
}

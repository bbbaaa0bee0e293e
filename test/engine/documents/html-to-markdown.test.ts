import fc from 'fast-check';
import { expect, test } from 'vitest';
import { htmlToMarkdown } from '../../../src/engine/documents/html-to-markdown.ts';
import { PARSE_LIMITS } from '../../../src/engine/documents/parsed-document.ts';

test.each([
  ['headings, without emphasis', '<h2>A <b>b</b>old<br>one</h2><p>x</p>', '## A bold one\n\nx'],
  [
    'links and images keep their words',
    '<p>See <a href="http://a/b">here</a> <img src=x alt="a cat"></p>',
    'See here a cat',
  ],
  [
    'lists in lists',
    '<ul><li>one<ol start=3><li>two<li>three</ol><li>four</ul>',
    '- one\n  3. two\n  4. three\n- four',
  ],
  [
    'code to the letter',
    '<pre class="language-js">a  = 1<br>\n\n\n\n  b*_\n</pre>',
    '```js\na  = 1\n\n\n\n\n  b*_\n```',
  ],
  ['code with fences', '<pre><code>```\nx</code></pre>', '````\n```\nx\n````'],
  ['code in a list', '<ul><li>x<pre>a\n b</pre></ul>', '- x\n\n  ```\n  a\n   b\n  ```'],
  ['code in a heading', '<h1>See <pre>x</pre> there</h1>', null],
  ['quotes', '<blockquote><p>a<p>b</blockquote>', '> a\n>\n> b'],
  ['text that looks like structure', '<p># a</p><p>``` b</p>', '\\# a\n\n\\``` b'],
  ['blanks that are no blanks', '<p>a\u00a0\u00a0 \n b</p>', 'a b'],
  ['nothing', '', ''],
])('%s', (_what, html, markdown) => {
  const text = htmlToMarkdown(html);
  if (markdown === null) expect(text.replace(/[^a-zA-Z]/g, '')).toBe('Seexthere');
  else expect(text).toBe(markdown);
});

test('tables keep their rows and columns, whatever their cells span and hold', () => {
  const table = `<table style="border:1px"><caption>Cap</caption><tr><th>a|b<th colspan=2>c
    <tr><td rowspan=2>1<td>2<td><ul><li>q<li>r</ul><tr><td>5<td>6</table>`;
  expect(htmlToMarkdown(table)).toBe('Cap\n\n| a\\|b | c |  |\n| --- | --- | --- |\n| 1 | 2 | - q - r |\n|  | 5 | 6 |');
});

test('a table that arranges a page is none', () => {
  const inner = '<table><tr><td>1<td>2</table>';
  expect(htmlToMarkdown(`<table><tr><td><h2>T</h2><p>a<p>b<td>${inner}</table>`)).toBe(
    '## T\n\na\n\nb\n\n| 1 | 2 |\n| --- | --- |',
  );
  expect(htmlToMarkdown('<table><tr><td><p>a<p>b<tr><td>c</table>')).toBe('a\n\nb\n\nc');
});

test('what no reader sees is left out', () => {
  const hidden = [
    'hidden',
    'aria-hidden="true"',
    'style="color:red; display : none"',
    'style="visibility:hidden"',
    'style="OPACITY: 0 !important"',
    'style="font-size:0px"',
    'style="display:/**/none"',
  ];
  for (const attribute of hidden) expect(htmlToMarkdown(`<p>a<span ${attribute}>secret</span></p>`)).toBe('a');
  for (const shown of [
    'style="opacity:0.5"',
    'style="font-size:0.9em"',
    'style="display:block"',
    'aria-hidden="false"',
  ]) {
    expect(htmlToMarkdown(`<p>a<span ${shown}>b</span></p>`)).toBe('ab');
  }
  for (const tag of ['script', 'style', 'template', 'noscript', 'button', 'textarea', 'svg']) {
    expect(htmlToMarkdown(`<div><p>a</p><${tag}>secret</${tag}></div>`)).toBe('a');
  }
});

test.each([
  '<html><head><title>t</title></head><p>a</p>b</html>',
  '<!doctype html><title>t</title><p>a</p>b',
  '<head><title>t</title></head><body><p>a</p>b</body>',
  '<html><body><p>a</p></body>b</html>',
  '<p>a</p><html><body>b</body></html>',
  '<!-- <html> --><p>a</p>b',
])('no text is lost where tags are left out: %s', (html) => {
  expect(htmlToMarkdown(html)).toBe('a\n\nb');
});

test('attributes are limited, on one element and on all together, and quotes hide none', () => {
  const tooMany = expect.objectContaining({ code: 'document_too_complex' }) as Error;
  const { htmlAttributes: ofAll, htmlElementAttributes: ofOne } = PARSE_LIMITS;
  for (const attribute of [' a', ' a=1', ' a = "> <p"', "/a='\"'"]) {
    const element = `<p${attribute.repeat(ofOne)}>x</p>`;
    expect(htmlToMarkdown(element)).toBe('x');
    expect(() => htmlToMarkdown(`<p${attribute.repeat(ofOne + 1)}>x</p>`)).toThrow(tooMany);
    expect(() => htmlToMarkdown(element.repeat(Math.floor(ofAll / ofOne) + 1))).toThrow(tooMany);
  }
  expect(htmlToMarkdown(`<p>${'a=1 '.repeat(5_000)}</p>`)).toContain('a=1 a=1');
  expect(htmlToMarkdown('<p a="1" b=\'2\' c d=e/>x <i a>y</i>')).toBe('x y');
});

test('depth and elements are limited', () => {
  const lists = (depth: number) => '<ul><li>x'.repeat(depth);
  expect(htmlToMarkdown(lists(100)).match(/x/g)?.length).toBe(100);
  for (const html of [lists(200), lists(20_000), '<div>'.repeat(PARSE_LIMITS.depth), '<b>'.repeat(5_000)]) {
    expect(() => htmlToMarkdown(html)).toThrow(expect.objectContaining({ code: 'document_too_complex' }) as Error);
  }
  expect(htmlToMarkdown('<p>x'.repeat(5_000)).length).toBe(3 * 5_000 - 2);
  const wide = '<i>'.repeat(PARSE_LIMITS.htmlElements + 1);
  expect(() => htmlToMarkdown(wide)).toThrow(expect.objectContaining({ code: 'document_too_complex' }) as Error);
  const long = 'x'.repeat(PARSE_LIMITS.htmlBytes + 1);
  expect(() => htmlToMarkdown(long)).toThrow(expect.objectContaining({ code: 'document_too_large' }) as Error);
});

test('nesting does not multiply the text', () => {
  const lines = '<br>x'.repeat(2_000);
  for (const tag of ['ul><li', 'blockquote']) {
    const html = `<${tag}>`.repeat(100) + lines;
    expect(htmlToMarkdown(html).length).toBeLessThan(20 * lines.length);
  }
  const spans = '<tr><td rowspan=64 colspan=64>a'.repeat(2_000);
  expect(htmlToMarkdown(`<table>${spans}</table>`).length).toBeLessThan(200_000);
});

// Each of these shapes took a minute or more before it was guarded against; the test's own bound is what fails then.
test.each([
  ['rows of a table', `<table>${'<tr><td>a<td>b'.repeat(10_000)}</table>`],
  ['items of a list', `<ol>${'<li>a'.repeat(20_000)}</ol>`],
  ['blanks in code', `<pre>${' '.repeat(1_000_000)}x</pre>`],
  ['blanks of a fixed width', `<p>a<span>${'\u00a0'.repeat(1_000_000)}</span>b</p>`],
  ['comments in a style', `<p style="${' /* '.repeat(250_000)}">x</p>`],
  ['marks of emphasis', `<p>${'*_[`'.repeat(250_000)}</p>`],
  ['comments that never end', '<!--'.repeat(1_000_000)],
  ['tags that end nothing', '</p></b>'.repeat(40_000)],
])('%s take time in proportion to their number', (_what, html) => {
  expect(htmlToMarkdown(html)).toBeDefined();
});

test('any text comes out once, without controls', () =>
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), (texts) => {
      const escape = (text: string) => text.replace(/[<&\0]/g, (character) => `&#${character.charCodeAt(0)};`);
      const text = htmlToMarkdown(texts.map((one) => `<p>${escape(one)}</p>`).join(''));
      const letters = (one: string) => one.replace(/[^\p{L}\p{N}]/gu, '');
      expect(letters(text)).toBe(letters(texts.join('')));
      expect(text).not.toMatch(/[\0-\x08\x0e-\x1f]/);
      expect(text.isWellFormed()).toBe(true);
    }),
  ));

import fc from 'fast-check';
import iconv from 'iconv-lite';
import { expect, test } from 'vitest';
import { PARSE_LIMITS } from '../../../src/engine/documents/parsed-document.ts';
import { childNamed, decodeXml, descendantsNamed, parseXml, textOf } from '../../../src/engine/documents/xml.ts';

test('elements and texts keep their order, attributes their prefix, and entities are resolved', () => {
  const root = parseXml(
    Buffer.from(
      '<?xml version="1.0"?><a:b x="1 &amp; 2" r:id="q"> t &#x41;&#66; <c/><![CDATA[<&amp;]]> v<!-- > --></a:b>',
    ),
  );
  expect(root).toEqual({
    name: 'b',
    attributes: new Map([
      ['x', '1 & 2'],
      ['r:id', 'q'],
    ]),
    children: [' t AB ', { name: 'c', attributes: new Map(), children: [] }, '<&amp;', ' v'],
  });
});

test('any text survives escaping', () =>
  fc.assert(
    fc.property(fc.string(), (text) => {
      const escaped = text.replace(/[<>&"\r\0]/g, (character) => `&#${character.charCodeAt(0)};`);
      expect(textOf(parseXml(Buffer.from(`<t>${escaped}</t>`)))).toBe(text.toWellFormed());
    }),
  ));

test('thousands of entities are resolved', () => {
  expect(textOf(parseXml(Buffer.from(`<t>${'&amp;'.repeat(5_000)}</t>`)))).toBe('&'.repeat(5_000));
});

test('the encoding is found by mark, first bytes and declaration', () => {
  const texts: [string, string, string][] = [
    ['utf-8', '<t>né 世</t>', 'né 世'],
    ['utf-16le', '\ufeff<t>né 世</t>', 'né 世'],
    ['utf-16be', '<t>né 世</t>', 'né 世'],
    ['windows-1251', '<?xml version="1.0" encoding="windows-1251"?><t>мир</t>', 'мир'],
    ['utf-8', '<?xml version="1.0" encoding="UTF-16"?><t>né</t>', 'né'],
  ];
  for (const [encoding, xml, text] of texts) expect(textOf(parseXml(iconv.encode(xml, encoding)))).toBe(text);
  expect(() => decodeXml(Buffer.from('<?xml version="1.0" encoding="x-unknown"?><t/>'))).toThrow(
    expect.objectContaining({ code: 'unsupported_encoding' }) as Error,
  );
});

test.each([
  ['a document type', '<!DOCTYPE t SYSTEM "http://example.org/t.dtd"><t/>'],
  ['an entity bomb', '<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><t>&b;</t>'],
  ['an entity alone', '<!ENTITY a "b"><t/>'],
  ['no element', 'text'],
  ['nothing', ''],
  ['an open element', '<a><b></b>'],
  ['one end too many', '<a></a></b>'],
  ['an open tag', '<a><b '],
  ['an open comment', '<a><!-- </a>'],
  ['an open value', '<a b="></a>'],
  ['a name that reaches into the program', '<__proto__ a="1"/>'],
])('%s is refused', (_what, xml) => {
  expect(() => parseXml(Buffer.from(xml))).toThrow(expect.objectContaining({ code: 'corrupt_document' }) as Error);
});

test('depth is limited', () => {
  const nested = (depth: number) => Buffer.from('<a>'.repeat(depth) + 'x' + '</a>'.repeat(depth));
  const root = parseXml(nested(PARSE_LIMITS.depth));
  expect([...descendantsNamed(root, 'a')].length).toBe(PARSE_LIMITS.depth - 1);
  expect(textOf(childNamed(root, 'a'))).toBe('x');
  for (const depth of [PARSE_LIMITS.depth + 1, 5_000, 500_000]) {
    expect(() => decodeXml(nested(depth))).toThrow(expect.objectContaining({ code: 'document_too_complex' }) as Error);
  }
});

test('elements are limited', () => {
  const wide = Buffer.from(`<a>${'<b/>'.repeat(PARSE_LIMITS.xmlElements)}</a>`);
  expect(() => decodeXml(wide)).toThrow(expect.objectContaining({ code: 'document_too_complex' }) as Error);
});

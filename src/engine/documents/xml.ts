import { XMLParser } from 'fast-xml-parser';
import iconv from 'iconv-lite';
import { DocumentError } from './document-error.ts';
import { PARSE_LIMITS } from './parsed-document.ts';

/** An element of a parsed XML text. */
export interface XmlElement {
  /** Name of the element without its namespace prefix, which each program chooses freely. */
  readonly name: string;
  /**
   * Values of the attributes by their names as written, prefix included: `id` and `r:id` differ. Entities are resolved.
   */
  readonly attributes: ReadonlyMap<string, string>;
  /** Elements and texts directly in the element, in the order of the file. Entities are resolved, blanks are kept. */
  readonly children: readonly (XmlElement | string)[];
}

/**
 * Decodes an XML file by its byte order mark, its first bytes or its declaration, else as UTF-8, and removes the mark.
 * Constructs that could harm a parser are refused: DOCTYPE, and so every entity that the file could define; unclosed or
 * unbalanced tags; nesting over `PARSE_LIMITS.depth` (256); more than `PARSE_LIMITS.xmlElements` (2,000,000) elements.
 * @throws DocumentError `corrupt_document` for a file that is not well-formed or has a DOCTYPE, `document_too_complex`
 *   beyond the limits, `unsupported_encoding` for an unknown declared encoding
 */
export function decodeXml(bytes: Uint8Array): string {
  const xml = decode(bytes);
  checkMarkup(xml);
  return xml;
}

/**
 * Parses an XML file and returns its root element.
 * @throws DocumentError `corrupt_document` for a file that is not well-formed or has a DOCTYPE, `document_too_complex`
 *    beyond the limits, `unsupported_encoding` for an unknown declared encoding
 */
export function parseXml(bytes: Uint8Array): XmlElement {
  const xml = decodeXml(bytes);
  let nodes: readonly ParsedNode[];
  try {
    nodes = new XMLParser(PARSER_OPTIONS).parse(xml) as readonly ParsedNode[];
  } catch (error) {
    throw malformed(error);
  }
  const root = nodes.map(convert).find((node) => typeof node !== 'string');
  if (!root) throw malformed();
  return root;
}

/** Returns the direct child elements with a name, given without prefix; empty if there are none. */
export function childrenNamed(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => typeof child !== 'string' && child.name === name) as XmlElement[];
}

/** Returns the first direct child element with a name, given without prefix; undefined if there is none. */
export function childNamed(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element?.children.find((child) => typeof child !== 'string' && child.name === name) as XmlElement | undefined;
}

/** Visits all elements with a name, given without prefix, below an element at any depth, in the order of the file. */
export function* descendantsNamed(element: XmlElement, name: string): Generator<XmlElement> {
  for (const child of element.children) {
    if (typeof child === 'string') continue;
    if (child.name === name) yield child;
    yield* descendantsNamed(child, name);
  }
}

/** Returns all text below an element, at any depth, joined without separators; '' for none. */
export function textOf(element: XmlElement | undefined): string {
  if (!element) return '';
  return element.children.map((child) => (typeof child === 'string' ? child : textOf(child))).join('');
}

const PARSER_OPTIONS = {
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  // Entities are resolved in `resolveEntities`: the parser gives up after 1,000 of them.
  processEntities: false,
  parseTagValue: false,
  parseAttributeValue: false,
  trimValues: false,
  cdataPropName: '#cdata',
  ignoreDeclaration: true,
  ignorePiTags: true,
  maxNestedTags: PARSE_LIMITS.depth + 1,
} as const;

/**
 * A node as the XML parser returns it: one key is the element's name, with its children as value; `:@` has its
 * attributes. A text is under the key `#text`.
 */
type ParsedNode = Readonly<Record<string, unknown>>;

function convert(node: ParsedNode): XmlElement | string {
  if (typeof node['#text'] === 'string') return resolveEntities(node['#text']);
  const key = Object.keys(node).find((name) => name !== ':@') ?? '';
  const children = node[key] as readonly ParsedNode[];
  if (key === '#cdata') return children.map((child) => String(child['#text'])).join('');
  const attributes = Object.entries((node[':@'] ?? {}) as Record<string, string>);
  return {
    name: key.slice(key.indexOf(':') + 1),
    attributes: new Map(attributes.map(([name, value]) => [name, resolveEntities(value)])),
    children: children.map(convert),
  };
}

const ENTITY = /&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});/g;
const NAMED_ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const MAX_CODE_POINT = 0x10ffff;

function resolveEntities(text: string): string {
  return text.replace(ENTITY, (entity) => {
    const name = entity.slice(1, -1);
    if (!name.startsWith('#')) return NAMED_ENTITIES[name] as string;
    const code = name.startsWith('#x') ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
    return code > MAX_CODE_POINT ? '\ufffd' : String.fromCodePoint(code);
  });
}

function decode(bytes: Uint8Array): string {
  const charset = charsetOf(bytes);
  if (!iconv.encodingExists(charset)) {
    throw new DocumentError(
      'unsupported_encoding',
      'A part of the document declares a character encoding that is not known. Save it as UTF-8.',
    );
  }
  return iconv.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), charset);
}

/**
 * Returns the name of an XML file's encoding: the one that its first bytes show, else the declared one, else `utf-8`. A
 * declared name may be unknown. The declaration is searched for in the first 128 bytes. UTF-16 is recognised by its
 * zero bytes, since a declaration in it cannot be read as ASCII.
 */
function charsetOf(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  if (first === 0xef && second === 0xbb) return 'utf-8';
  if (first === 0x3c && second === 0) return 'utf-16le';
  if (first === 0 && second === 0x3c) return 'utf-16be';
  const start = Buffer.from(bytes.subarray(0, 128)).toString('latin1');
  const declared = /^\s*<\?xml\s[^>]*\bencoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1];
  // Bytes that were just read as ASCII are no UTF-16, whatever they declare.
  return declared === undefined || /^utf-?16/i.test(declared) ? 'utf-8' : declared;
}

function checkMarkup(xml: string): void {
  let depth = 0;
  let elements = 0;
  let at = xml.indexOf('<');
  while (at !== -1) {
    if (xml.startsWith('<!--', at)) at = after(xml, '-->', at + 4);
    else if (xml.startsWith('<![CDATA[', at)) at = after(xml, ']]>', at + 9);
    else if (xml.startsWith('<?', at)) at = after(xml, '?>', at + 2);
    else if (xml.startsWith('<!', at)) throw doctype();
    else {
      const end = tagEnd(xml, at);
      if (xml[at + 1] === '/') depth--;
      else {
        elements++;
        if (xml[end - 1] !== '/') depth++;
      }
      if (depth < 0) throw malformed();
      if (depth > PARSE_LIMITS.depth || elements > PARSE_LIMITS.xmlElements) throw tooComplex();
      at = end + 1;
    }
    at = xml.indexOf('<', at);
  }
  if (depth !== 0 || elements === 0) throw malformed();
}

function after(xml: string, end: string, from: number): number {
  const at = xml.indexOf(end, from);
  if (at === -1) throw malformed();
  return at + end.length;
}

/**
 * Returns the offset of the `>` that closes the tag at `from`; a `>` inside quotes belongs to an attribute's value.
 * @throws DocumentError `corrupt_document` if there is none before the next `<` outside of quotes
 */
function tagEnd(xml: string, from: number): number {
  let quote = 0;
  for (let at = from + 1; at < xml.length; at++) {
    const code = xml.charCodeAt(at);
    if (quote !== 0) {
      if (code === quote) quote = 0;
    } else if (code === GREATER_THAN) return at;
    else if (code === DOUBLE_QUOTE || code === SINGLE_QUOTE) quote = code;
    else if (code === LESS_THAN) throw malformed();
  }
  throw malformed();
}

const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
const LESS_THAN = 0x3c;
const GREATER_THAN = 0x3e;

function doctype(): DocumentError {
  return new DocumentError(
    'corrupt_document',
    'A part of the document declares a document type or entities, which office programs never write. Save it again.',
  );
}

function tooComplex(): DocumentError {
  return new DocumentError(
    'document_too_complex',
    `A part of the document nests elements more than ${PARSE_LIMITS.depth} deep ` +
      `or holds more than ${PARSE_LIMITS.xmlElements} of them.`,
  );
}

function malformed(cause?: unknown): DocumentError {
  return new DocumentError(
    'corrupt_document',
    'A part of the document is not well-formed XML. Save the document again and hand in the new file.',
    { cause },
  );
}

import { parseHTML } from 'linkedom';
import { DocumentError } from './document-error.ts';
import { PARSE_LIMITS } from './parsed-document.ts';

/**
 * The members of a DOM node that are used here. They have the meaning that the DOM standard gives them. The program is
 * compiled without the browser's types; with them, code that uses `window` would compile, too.
 */
export interface HtmlNode {
  readonly nodeType: number;
  readonly nodeName: string;
  nodeValue: string | null;
  readonly textContent: string | null;
  readonly parentNode: HtmlElement | null;
  readonly firstChild: HtmlNode | null;
  readonly nextSibling: HtmlNode | null;
  cloneNode(deep: boolean): this;
}

/** The members of a DOM element that are used here. */
export interface HtmlElement extends HtmlNode {
  readonly localName: string;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  hasAttribute(name: string): boolean;
  querySelector(selector: string): HtmlElement | null;
  querySelectorAll(selector: string): Iterable<HtmlElement>;
  append(...nodes: (HtmlNode | string)[]): void;
  after(...nodes: (HtmlNode | string)[]): void;
  replaceWith(...nodes: (HtmlNode | string)[]): void;
  remove(): void;
}

/** The members of a DOM document that are used here. */
export interface HtmlDocument extends HtmlElement {
  /** The root element `html`. */
  readonly documentElement: HtmlElement;
  readonly body: HtmlElement;
  readonly title: string;
  createElement(name: string): HtmlElement;
}

/**
 * Parses an HTML page, or a part of one, into a tree with `html` and `body`. Each run of blanks becomes one space, as
 * in browsers, but not in `pre`, scripts, styles and `textarea`. The limits are checked before any step that takes more
 * than linear time.
 * @throws DocumentError `document_too_large` over `PARSE_LIMITS.htmlBytes` (5,242,880) UTF-16 code units;
 *   `document_too_complex` over `PARSE_LIMITS.htmlElements`, `PARSE_LIMITS.htmlAttributes`,
 *   `PARSE_LIMITS.htmlElementAttributes` or `PARSE_LIMITS.depth`
 */
export function parseHtml(html: string): HtmlDocument {
  if (html.length > PARSE_LIMITS.htmlBytes) throw pageTooLarge();
  refuseMarkup(html);
  const document = parsePage(html);
  refuseDeep(document);
  gatherBody(document);
  foldBlanks(document.documentElement);
  return document;
}

/**
 * Parses a page. HTML allows to omit the tags `html`, `head` and `body`: if the page has none of them, all are added,
 * and if its root is not `html`, that is. Otherwise linkedom (the parser) would take the first element as the root.
 */
function parsePage(html: string): HtmlDocument {
  const isPage = /<(?:html|head|body)[\s>]/i.test(html);
  const document = parseTree(isPage ? html : `<html><head></head><body>${html}</body></html>`);
  const root = document.documentElement as HtmlElement | null;
  return root?.localName === 'html' ? document : parseTree(`<html>${html}</html>`);
}

function parseTree(html: string): HtmlDocument {
  return (parseHTML(html) as unknown as { readonly document: HtmlDocument }).document;
}

/**
 * Moves the children of `html` other than `head` and `body` to the end of the body. That takes time quadratic in a
 * tree's depth, so it is done after the depth check.
 */
function gatherBody(document: HtmlDocument): void {
  const { body } = document;
  for (const child of childrenOf(document.documentElement)) {
    if (child !== body && child.nodeName !== 'HEAD') body.append(child);
  }
}

/** Returns the present child nodes of an element, as a list that later changes of the tree do not affect. */
export function childrenOf(element: HtmlElement): HtmlNode[] {
  const children: HtmlNode[] = [];
  for (let child = element.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

/** Creates the error `document_too_large` for a page over `PARSE_LIMITS.htmlBytes`. */
export function pageTooLarge(): DocumentError {
  return new DocumentError(
    'document_too_large',
    `The text with its HTML markup is larger than ${PARSE_LIMITS.htmlBytes / (1024 * 1024)} MB, ` +
      'which is the most that is read.',
  );
}

/**
 * Visits all nodes below a root in document order, without the root and without recursion. Nodes must not be moved or
 * removed during the visit.
 */
export function* nodesBelow(root: HtmlNode): Generator<HtmlNode> {
  let node: HtmlNode | null = root.firstChild;
  while (node) {
    yield node;
    let next: HtmlNode | null = node.firstChild;
    for (let up: HtmlNode | null = node; !next && up && up !== root; up = up.parentNode) next = up.nextSibling;
    node = next;
  }
}

const ELEMENT_NODE = 1;
const TEXT_NODE = 3;

export function isElement(node: HtmlNode): node is HtmlElement {
  return node.nodeType === ELEMENT_NODE;
}

/**
 * Scans the tags in the order of the parser, and refuses pages that would take the parser long (20 s for 75,000 nested
 * lists). A scan knows only partly which tags end others, so it refuses only a depth far above the limit; the exact
 * check is made on the tree.
 * @throws DocumentError `document_too_complex`
 */
function refuseMarkup(html: string): void {
  const open: string[] = [];
  const openByName = new Map<string, number>();
  let elements = 0;
  let attributes = 0;
  TAG.lastIndex = 0;
  for (let match = TAG.exec(html); match; match = TAG.exec(html)) {
    const name = (match[2] ?? '').toLowerCase();
    if (match[0] === '<!--') {
      const end = html.indexOf('-->', TAG.lastIndex);
      if (end === -1) return;
      TAG.lastIndex = end;
    } else if (match[1] === '/') {
      if ((openByName.get(name) ?? 0) > 0) closeUpTo(name, open, openByName);
    } else {
      elements++;
      const own = countAttributes(html, TAG.lastIndex);
      if (own > PARSE_LIMITS.htmlElementAttributes) throw tooComplex();
      attributes += own;
      if (!NEVER_NESTED.has(name)) {
        open.push(name);
        openByName.set(name, (openByName.get(name) ?? 0) + 1);
      }
    }
    if (elements > PARSE_LIMITS.htmlElements || open.length > SURELY_TOO_DEEP) throw tooComplex();
    if (attributes > PARSE_LIMITS.htmlAttributes) throw tooComplex();
  }
}

const TAG = /<!--|<(\/?)([a-z][^\s/>]{0,40})/gi;
/** Counts the attributes of a tag whose name ends at `start`. It stops at 257, which is one more than are allowed. */
function countAttributes(html: string, start: number): number {
  let attributes = 0;
  ATTRIBUTE.lastIndex = start;
  while (attributes <= PARSE_LIMITS.htmlElementAttributes && ATTRIBUTE.test(html)) attributes++;
  return attributes;
}

const ATTRIBUTE = /[\s/]+[^\s=>/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*))?/y;
/** Number of open tags above which a page is certainly too deep, even if some of these tags end others. */
const SURELY_TOO_DEEP = 8 * PARSE_LIMITS.depth;
/**
 * Names of elements that have no content, contain no elements, or end where the next such element begins, so that they
 * do not add to the depth.
 */
const NEVER_NESTED: ReadonlySet<string> = new Set(
  (
    'area base br col embed hr img input link meta param source track wbr script style textarea title option ' +
    'optgroup p li dt dd tr td th thead tbody tfoot colgroup rp rt path circle rect line polygon polyline ellipse ' +
    'use stop'
  ).split(' '),
);

/** Closes the innermost open element with a name, and all open elements inside it. */
function closeUpTo(name: string, open: string[], openByName: Map<string, number>): void {
  for (let last = open.pop(); last !== undefined; last = open.pop()) {
    openByName.set(last, (openByName.get(last) ?? 0) - 1);
    if (last === name) return;
  }
}

function refuseDeep(document: HtmlDocument): void {
  let depth = 1;
  let node: HtmlNode | null = document.documentElement;
  while (node) {
    if (depth > PARSE_LIMITS.depth) throw tooComplex();
    if (node.firstChild) {
      node = node.firstChild;
      depth++;
      continue;
    }
    while (node && !node.nextSibling && depth > 0) {
      node = node.parentNode;
      depth--;
    }
    node = depth > 0 ? (node?.nextSibling ?? null) : null;
  }
}

/**
 * Replaces each run of white space in the texts below a root with one space, except inside `pre`, `script`, `style` and
 * `textarea`. Without this, Readability and turndown take time quadratic in a run's length.
 */
function foldBlanks(root: HtmlElement): void {
  const verbatim = new Set<HtmlNode>();
  for (const node of nodesBelow(root)) {
    const isVerbatim = node.parentNode !== null && verbatim.has(node.parentNode);
    if (isElement(node) && (isVerbatim || VERBATIM.has(node.localName))) verbatim.add(node);
    if (node.nodeType === TEXT_NODE && !isVerbatim) node.nodeValue = foldedBlanks(node.nodeValue ?? '');
  }
}

const VERBATIM: ReadonlySet<string> = new Set(['pre', 'script', 'style', 'textarea']);

function tooComplex(): DocumentError {
  return new DocumentError(
    'document_too_complex',
    `The page nests elements more than ${PARSE_LIMITS.depth} deep ` +
      `or holds more than ${PARSE_LIMITS.htmlElements} of them, ` +
      `or more than ${PARSE_LIMITS.htmlAttributes} attributes, ` +
      `or more than ${PARSE_LIMITS.htmlElementAttributes} on one element.`,
  );
}

/**
 * Replaces each run of white space with one space. The pattern matches runs of limited length, since it would exceed
 * the stack in a run of megabytes.
 */
function foldedBlanks(text: string): string {
  return text.replace(/\s{1,4096}/g, ' ').replace(/ {2,}/g, ' ');
}

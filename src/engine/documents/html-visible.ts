import type { DocumentWarning, Omission } from '../types.ts';
import { isElement, nodesBelow, type HtmlDocument, type HtmlElement, type HtmlNode } from './html-tree.ts';
import { hidesBox, isClipped, readStyles, unreadableIn, type Unreadable } from './html-styles.ts';

/**
 * Removes content from a page's tree that no reader of the page sees: the title, scripts, styles, comments, drawings,
 * embedded objects, form controls, and text that attributes or styles hide. Hidden text can be meant to influence
 * machines, so it is reported.
 * @returns one warning `hidden_text_dropped` and one omission if hidden text was removed; else empty lists
 */
export function dropUnseen(document: HtmlDocument): {
  readonly warnings: DocumentWarning[];
  readonly omissions: Omission[];
} {
  const styleOf = readStyles(document);
  const dropped = new Set<HtmlNode>();
  const unreadable = new Map<HtmlNode, Unreadable>();
  let hiddenTexts = 0;
  let characters = 0;
  const hide = (node: HtmlNode) => {
    dropped.add(node);
    const { length } = (node.textContent ?? '').replace(/\s+/g, '');
    characters += length;
    if (length > 0) hiddenTexts++;
  };
  for (const node of nodesBelow(document.documentElement)) {
    const parent = node.parentNode;
    const around = (parent && unreadable.get(parent)) ?? 0;
    if (parent && dropped.has(parent)) dropped.add(node);
    else if (node.nodeType === COMMENT_NODE) dropped.add(node);
    else if (!isElement(node)) {
      if (around !== 0) hide(node);
    } else if (UNSEEN.has(node.localName)) dropped.add(node);
    else {
      const style = styleOf(node);
      const within = unreadableIn(style, around);
      if (within !== 0) unreadable.set(node, within);
      const isUnseenImage = within !== 0 && node.localName === 'img';
      if (isHidden(node) || hidesBox(style) || (isClipped(style) && !isFormula(node)) || isUnseenImage) hide(node);
    }
  }
  for (const node of dropped) if (node.parentNode && !dropped.has(node.parentNode)) (node as HtmlElement).remove();
  if (hiddenTexts === 0) return { warnings: [], omissions: [] };
  const parts = hiddenTexts === 1 ? '1 part' : `${hiddenTexts} parts`;
  const message = `Left out: ${parts} of the text that its markup hides.`;
  return {
    warnings: [{ code: 'hidden_text_dropped', message }],
    omissions: [{ reason: 'hidden_text', count: hiddenTexts, characters }],
  };
}

const COMMENT_NODE = 8;

const UNSEEN: ReadonlySet<string> = new Set([
  'title',
  'script',
  'style',
  'noscript',
  'template',
  'iframe',
  'object',
  'embed',
  'svg',
  'canvas',
  'button',
  'input',
  'select',
  'textarea',
  'datalist',
  'progress',
  'dialog',
]);

function isHidden(element: HtmlElement): boolean {
  return element.hasAttribute('hidden') || element.getAttribute('aria-hidden') === 'true';
}

/**
 * Tells whether a clipped (invisible) element is a formula. Its text for screen readers is kept, as it is the only text
 * of a formula that is shown as a drawing.
 */
function isFormula(element: HtmlElement): boolean {
  return element.querySelector('math') !== null;
}

import type { DocumentWarning } from '../types.ts';
import { isElement, nodesBelow, type HtmlDocument, type HtmlElement, type HtmlNode } from './html-tree.ts';

/**
 * Takes away what no reader of the page sees: the title, scripts, styles, controls of forms, and text that its markup hides. Hidden text is how
 * pages plant words for machines, so it is reported.
 * @returns a warning where hidden text was dropped
 */
export function dropUnseen(document: HtmlDocument): DocumentWarning[] {
  const dropped = new Set<HtmlNode>();
  let hiddenTexts = 0;
  for (const node of nodesBelow(document.documentElement)) {
    if (node.parentNode && dropped.has(node.parentNode)) dropped.add(node);
    else if (node.nodeType === COMMENT_NODE) dropped.add(node);
    else if (isElement(node) && UNSEEN.has(node.localName)) dropped.add(node);
    else if (isElement(node) && isHidden(node)) {
      dropped.add(node);
      if ((node.textContent ?? '').trim() !== '') hiddenTexts++;
    }
  }
  for (const node of dropped) if (node.parentNode && !dropped.has(node.parentNode)) (node as HtmlElement).remove();
  if (hiddenTexts === 0) return [];
  const parts = hiddenTexts === 1 ? '1 part' : `${hiddenTexts} parts`;
  return [{ code: 'hidden_text_dropped', message: `Left out: ${parts} of the text that its markup hides.` }];
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
  if (element.hasAttribute('hidden') || element.getAttribute('aria-hidden') === 'true') return true;
  const style = element.getAttribute('style');
  return style !== null && HIDING.test(withoutComments(style.toLowerCase()).replace(/\s+/g, ''));
}

function withoutComments(style: string): string {
  const [first = '', ...rest] = style.split('/*');
  const afterComment = (part: string): string => (part.includes('*/') ? part.slice(part.indexOf('*/') + 2) : '');
  return first + rest.map(afterComment).join('');
}

/** On a style without blanks. */
const HIDING =
  /(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|opacity:(?:0|0?\.0+|0%)|font-size:0(?:\.0+)?(?:px|pt|r?em|%)?)(?:!important)?(?:;|$)/;

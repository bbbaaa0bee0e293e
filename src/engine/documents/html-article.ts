import { Readability } from '@mozilla/readability';
import type { Omission } from '../types.ts';
import { isElement, nodesBelow, type HtmlDocument, type HtmlElement, type HtmlNode } from './html-tree.ts';

/**
 * Finds the main content of a page, without navigation, footers and banners. Readability (the library) finds articles.
 * If it finds none, or one with less than a third of the letters of the page's main part (as in documentation, tables
 * and indexes), the main part is returned: the `main` element if it has at least a third of the letters, else the body.
 * Readability is not used for a page whose nodes have depths of more than 200,000 together (`MAX_DEPTHS`).
 * @param document must have no hidden content (`dropUnseen`); navigation, footers and banners are removed from it
 * @returns `article`: an element of the document, or one outside of it; `omissions`: one entry with the number of
 *   characters left out, white space not counted, or an empty list
 */
export function findArticle(document: HtmlDocument): { readonly article: HtmlElement; readonly omissions: Omission[] } {
  const all = lettersIn(document.body);
  const article = articleOf(document);
  const characters = Math.max(0, all - lettersIn(article));
  return { article, omissions: characters === 0 ? [] : [{ reason: 'boilerplate', count: 1, characters }] };
}

function articleOf(document: HtmlDocument): HtmlElement {
  const article = readableWithin(document) ? readArticle(document) : null;
  const rest = contentOf(document);
  if (article === null) return rest;
  return lettersIn(article) * MIN_KEPT >= lettersIn(rest) ? article : rest;
}

/** An article, or the `main` element, must have at least 1 / `MIN_KEPT` of a page's letters to represent the page. */
const MIN_KEPT = 3;

/**
 * Greatest sum of the depths of all nodes of a page for which Readability is used. Its time grows with that sum, since
 * it reads the whole text below each element several times. A page of 35 kB that nests 200 deep takes it 2.6 s; news
 * pages have sums of 10,000 to 30,000.
 */
const MAX_DEPTHS = 200_000;

function readableWithin(document: HtmlDocument): boolean {
  const depths = new Map<HtmlNode, number>();
  let sum = 0;
  for (const node of nodesBelow(document.documentElement)) {
    const depth = (node.parentNode ? (depths.get(node.parentNode) ?? 0) : 0) + 1;
    if (node.firstChild) depths.set(node, depth);
    sum += depth;
  }
  return sum <= MAX_DEPTHS;
}

function readArticle(document: HtmlDocument): HtmlElement | null {
  // Readability takes the page apart, hence the copy.
  const copy = document.cloneNode(true);
  const reader = new Readability<unknown>(copy, {
    serializer: (node: unknown) => node,
    disableJSONLD: true,
    // Classes name the languages of code.
    keepClasses: true,
  });
  return (reader.parse()?.content ?? null) as HtmlElement | null;
}

/**
 * Removes navigation, footers, dialogs and consent banners from a page. Returns its `main` element if that has at least
 * a third of the remaining letters, else its body.
 */
function contentOf(document: HtmlDocument): HtmlElement {
  for (const chrome of document.querySelectorAll(CHROME)) chrome.remove();
  for (const node of [...nodesBelow(document.body)]) if (isElement(node) && isConsentBanner(node)) node.remove();
  const main = document.querySelector('main,[role="main"]');
  return main && lettersIn(main) * MIN_KEPT >= lettersIn(document.body) ? main : document.body;
}

const CHROME =
  'nav,footer,[role="navigation"],[role="banner"],[role="contentinfo"],[role="search"],' +
  '[role="dialog"],[role="alertdialog"],[role="menu"]';

function isConsentBanner(element: HtmlElement): boolean {
  const label = `${element.getAttribute('id') ?? ''} ${element.getAttribute('class') ?? ''}`;
  return element.localName !== 'body' && CONSENT.test(label) && lettersIn(element) < MAX_CONSENT_LETTERS;
}

const CONSENT = /\b(?:cookie|consent|gdpr)[\w-]*(?:banner|bar|notice|popup|modal|overlay|message|dialog)/i;
/**
 * Number of letters from which an element is never taken for a consent banner, since it may contain the page's text.
 */
const MAX_CONSENT_LETTERS = 3_000;

function lettersIn(element: HtmlElement): number {
  return (element.textContent ?? '').replace(/\s+/g, '').length;
}

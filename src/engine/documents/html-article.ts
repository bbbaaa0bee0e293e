import { Readability } from '@mozilla/readability';
import { isElement, nodesBelow, type HtmlDocument, type HtmlElement, type HtmlNode } from './html-tree.ts';

/**
 * The part of a page that is its own text, with navigation, footers and banners gone. Readability finds articles; where it finds none,
 * or less than a third of what the page shows besides its chrome (documentation, tables, indexes), all of that is kept instead.
 * @param document holds nothing unseen; is changed
 */
export function findArticle(document: HtmlDocument): HtmlElement {
  const article = readableWithin(document) ? readArticle(document) : null;
  const rest = contentOf(document);
  if (article === null) return rest;
  return lettersIn(article) * KEPT_LEAST >= lettersIn(rest) ? article : rest;
}

/** Readability must keep one part in so many of the text. */
const KEPT_LEAST = 3;

/**
 * Readability looks at the whole text below each element, several times over: a page of 35 kB that nests 200 deep takes it 2.6 s. The
 * sum of the depths of all nodes is what it takes its time for; news pages have 10,000 to 30,000.
 */
const DEPTHS_MOST = 200_000;

function readableWithin(document: HtmlDocument): boolean {
  const depths = new Map<HtmlNode, number>();
  let sum = 0;
  for (const node of nodesBelow(document.documentElement)) {
    const depth = (node.parentNode ? (depths.get(node.parentNode) ?? 0) : 0) + 1;
    if (node.firstChild) depths.set(node, depth);
    sum += depth;
  }
  return sum <= DEPTHS_MOST;
}

function readArticle(document: HtmlDocument): HtmlElement | null {
  // It takes the page apart, hence the copy.
  const copy = document.cloneNode(true);
  const reader = new Readability<unknown>(copy, {
    serializer: (node: unknown) => node,
    disableJSONLD: true,
    // They name the languages of code.
    keepClasses: true,
  });
  return (reader.parse()?.content ?? null) as HtmlElement | null;
}

/** The page's main part where it names one, else all of it; without its chrome. */
function contentOf(document: HtmlDocument): HtmlElement {
  for (const chrome of document.querySelectorAll(CHROME)) chrome.remove();
  for (const node of [...nodesBelow(document.body)]) if (isElement(node) && isConsentBanner(node)) node.remove();
  const main = document.querySelector('main,[role="main"]');
  return main && lettersIn(main) * KEPT_LEAST >= lettersIn(document.body) ? main : document.body;
}

const CHROME =
  'nav,footer,[role="navigation"],[role="banner"],[role="contentinfo"],[role="search"],[role="dialog"],[role="alertdialog"],[role="menu"]';

function isConsentBanner(element: HtmlElement): boolean {
  const label = `${element.getAttribute('id') ?? ''} ${element.getAttribute('class') ?? ''}`;
  return element.localName !== 'body' && CONSENT.test(label) && lettersIn(element) < CONSENT_LETTERS_MOST;
}

const CONSENT = /\b(?:cookie|consent|gdpr)[\w-]*(?:banner|bar|notice|popup|modal|overlay|message|dialog)/i;
const CONSENT_LETTERS_MOST = 3_000;

function lettersIn(element: HtmlElement): number {
  return (element.textContent ?? '').replace(/\s+/g, '').length;
}

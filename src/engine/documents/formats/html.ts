import { decodeHtml } from '../decode-html.ts';
import { findArticle } from '../html-article.ts';
import { readHtmlMetadata } from '../html-metadata.ts';
import { treeToMarkdown } from '../html-to-markdown.ts';
import { pageTooLarge, parseHtml } from '../html-tree.ts';
import { dropUnseen } from '../html-visible.ts';
import { PARSE_LIMITS, type FormatParser } from '../parsed-document.ts';

/**
 * Reads a web page: its article as Markdown below its title, without navigation and hidden text.
 * @throws DocumentError `document_too_large`, `document_too_complex` or `unsupported_encoding`
 */
export const readHtml: FormatParser = async (bytes, options) => {
  if (bytes.length > PARSE_LIMITS.htmlBytes) throw pageTooLarge();
  const { text: html, ...decoded } = await decodeHtml(bytes, options.charset);
  const document = parseHtml(html);
  const metadata = readHtmlMetadata(document);
  const hidden = dropUnseen(document);
  const { article, omissions } = findArticle(document);
  const markdown = treeToMarkdown(document, article);
  return {
    ...metadata,
    text: underTitle(metadata.title, markdown),
    pages: [],
    warnings: [...decoded.warnings, ...hidden.warnings],
    omissions: [...decoded.omissions, ...hidden.omissions, ...omissions],
  };
};

/** Adds the title as a heading above the text, unless the title is empty or the text has a heading of level 1. */
function underTitle(title: string, markdown: string): string {
  if (title === '' || markdown === '' || /^# /m.test(markdown)) return markdown;
  return `# ${title}\n\n${markdown}`;
}

import type { Address, Email } from 'postal-mime';
import type { DocumentWarning } from '../../types.ts';
import { DocumentError } from '../document-error.ts';
import { type FormatParser, PARSE_LIMITS } from '../parsed-document.ts';
import { bareDocument, instantOf } from './bare-document.ts';

/**
 * Reads an e-mail as Markdown: its subject as a heading, sender, recipients and date, then its text, quoted replies
 * included, or its HTML if it has no text. Attachments are counted, not read.
 */
export const readEmail: FormatParser = async (bytes) => {
  const email = await parseEmail(bytes);
  const body = await bodyOf(email);
  const head = headOf(email);
  if (head === '' && body === '') throw corrupt();
  const sender = email.from === undefined ? '' : nameOf(email.from);
  return bareDocument([head, body].filter((part) => part !== '').join('\n\n'), {
    title: email.subject?.trim() ?? '',
    authors: sender === '' ? [] : [sender],
    publishedAt: instantOf(email.date),
    warnings: warningsOf(email),
  });
};

async function parseEmail(bytes: Uint8Array): Promise<Email> {
  const { default: PostalMime } = await import('postal-mime');
  let email: Email;
  try {
    email = await PostalMime.parse(bytes, { maxNestingDepth: PARSE_LIMITS.depth, forceRfc822Attachments: false });
  } catch (error) {
    if (!(error instanceof Error) || !/^Maximum /.test(error.message)) throw error;
    throw new DocumentError('document_too_complex', 'The e-mail has too many headers or parts within parts.');
  }
  if (email.headers.length === 0) throw corrupt();
  return email;
}

async function bodyOf({ text, html }: Email): Promise<string> {
  const plain = (text ?? '').replace(/\r\n?/g, '\n').trim();
  if (plain !== '' || html === undefined) return plain;
  if (html.length > PARSE_LIMITS.htmlBytes) {
    throw new DocumentError(
      'document_too_large',
      `The e-mail holds more than ${PARSE_LIMITS.htmlBytes} characters of HTML.`,
    );
  }
  const { htmlToMarkdown } = await import('../html-to-markdown.ts');
  return htmlToMarkdown(html);
}

function headOf({ subject, from, to, cc, date }: Email): string {
  const instant = instantOf(date);
  const fields: readonly (readonly [name: string, value: string])[] = [
    ['From', from === undefined ? '' : formatAddress(from)],
    ['To', (to ?? []).map(formatAddress).join(', ')],
    ['Cc', (cc ?? []).map(formatAddress).join(', ')],
    ['Date', instant === null ? '' : new Date(instant).toISOString().slice(0, 16).replace('T', ' ')],
  ];
  const title = subject?.trim() ? `# ${subject.trim().replace(/\s+/g, ' ')}\n\n` : '';
  return `${title}${fields
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')}`.trim();
}

function formatAddress(address: Address): string {
  if (address.group !== undefined) return `${address.name}: ${address.group.map(formatAddress).join(', ')}`;
  return address.name === '' || address.name === address.address
    ? address.address
    : `${address.name} <${address.address}>`;
}

function nameOf(address: Address): string {
  return address.name.trim() || (address.address ?? '');
}

/** Warns of attachments. Images that the HTML shows are part of its look and do not count. */
function warningsOf({ attachments }: Email): DocumentWarning[] {
  const count = attachments.filter(({ related }) => related !== true).length;
  if (count === 0) return [];
  const message = `${count} ${count === 1 ? 'attachment was' : 'attachments were'} not read.`;
  return [{ code: 'attachment_ignored', message }];
}

function corrupt(): DocumentError {
  return new DocumentError('corrupt_document', 'The file has no header of an e-mail.');
}

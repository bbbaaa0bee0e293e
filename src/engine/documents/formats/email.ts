import type { Address, Email } from 'postal-mime';
import type { DocumentWarning } from '../../types.ts';
import type { ParsedDocument } from '../../ports.ts';
import { DocumentError } from '../document-error.ts';
import { type FormatParser, PARSE_LIMITS } from '../parsed-document.ts';
import { bareDocument, instantOf } from './bare-document.ts';

/**
 * Reads an e-mail as Markdown: its subject as a heading, sender, recipients and date, then its text with quoted
 * replies. If it has no plain text, its HTML is read. Attachments are not read, but a warning gives their number. An
 * e-mail without a text gives only its header fields; one whose fields are empty too gives ''.
 * @throws DocumentError `corrupt_document` for a file without any header field, and for one that has neither a usual
 *   field of an e-mail (`FIELDS`) nor a text; `document_too_complex` for too many fields or too deeply nested parts;
 *   `document_too_large` for an e-mail of HTML alone that has more than `PARSE_LIMITS.htmlBytes` code units
 */
export const readEmail: FormatParser = async (bytes) => {
  const email = await parseEmail(bytes);
  const body = await bodyOf(email);
  const head = headOf(email);
  const sender = email.from === undefined ? '' : nameOf(email.from);
  return bareDocument([head, body.text].filter((part) => part !== '').join('\n\n'), {
    title: email.subject?.trim() ?? '',
    authors: sender === '' ? [] : [sender],
    publishedAt: instantOf(email.date),
    warnings: [...warningsOf(email), ...body.warnings],
    omissions: body.omissions,
  });
};

async function parseEmail(bytes: Uint8Array): Promise<Email> {
  const { default: PostalMime } = await import('postal-mime');
  let email: Email;
  try {
    email = await PostalMime.parse(withoutBlankStart(bytes), {
      maxNestingDepth: PARSE_LIMITS.depth,
      forceRfc822Attachments: false,
    });
  } catch (error) {
    if (!(error instanceof Error) || !/^Maximum /.test(error.message)) throw error;
    throw new DocumentError('document_too_complex', 'The e-mail has too many headers or parts within parts.');
  }
  const isEmail = email.headers.some(({ key }) => FIELDS.has(key));
  const hasText = Boolean(email.text?.trim() || email.html?.trim());
  if (email.headers.length === 0 || (!isEmail && !hasText)) throw corrupt();
  return email;
}

/** Header fields, in lower case, one of which a file without a text must have to count as an e-mail. */
const FIELDS: ReadonlySet<string> = new Set(['from', 'to', 'cc', 'subject', 'date', 'received', 'message-id']);

/**
 * Removes empty lines before the header. Some editors leave them there, and the header would end at them, without
 * fields.
 */
function withoutBlankStart(bytes: Uint8Array): Uint8Array {
  const start = bytes.findIndex((byte) => byte !== 0x0a && byte !== 0x0d);
  return start <= 0 ? bytes : bytes.subarray(start);
}

async function bodyOf({
  text,
  html,
}: Email): Promise<Required<Pick<ParsedDocument, 'text' | 'warnings' | 'omissions'>>> {
  const plain = (text ?? '').replace(/\r\n?/g, '\n').trim();
  if (plain !== '' || html === undefined) return { text: plain, warnings: [], omissions: [] };
  if (html.length > PARSE_LIMITS.htmlBytes) {
    throw new DocumentError(
      'document_too_large',
      `The e-mail holds more than ${PARSE_LIMITS.htmlBytes} characters of HTML.`,
    );
  }
  const { readMarkup } = await import('../html-to-markdown.ts');
  return readMarkup(html);
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

/**
 * Returns a warning with the number of attachments; an empty list if there are none. Images that the HTML shows are not
 * counted.
 */
function warningsOf({ attachments }: Email): DocumentWarning[] {
  const count = attachments.filter(({ related }) => related !== true).length;
  if (count === 0) return [];
  const message = `${count} ${count === 1 ? 'attachment was' : 'attachments were'} not read.`;
  return [{ code: 'attachment_ignored', message }];
}

function corrupt(): DocumentError {
  return new DocumentError('corrupt_document', 'The file has no header of an e-mail.');
}

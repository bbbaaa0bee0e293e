import { createHash } from 'node:crypto';
import type { ReceiptItem } from '../../api/schemas/document-replies.ts';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { bold, counted, dim, green, print, red, table, yellow } from '../terminal.ts';

export interface ReceiptOptions extends ConnectionOptions {
  /** True to fetch the whole text and compare its hash with that of the receipt. */
  readonly verify?: boolean;
  /** True if the id is that of a batch of memories instead of a document. */
  readonly batch?: boolean;
  readonly json?: boolean;
}

/** Number of text spans of a document that one request reads. */
const PAGE = 1_000;

/**
 * Runs `cairn receipt ID`: prints which memory contains which characters of a document, and what was left out.
 * @throws CliError if characters are in no memory or were changed, or with `verify` if the server's text has another
 *   hash than the receipt
 */
export async function receipt(id: string, { verify, json, ...connection }: ReceiptOptions): Promise<void> {
  const client = connect(connection);
  const first = await client.getDocumentReceipt({ id, l: PAGE });
  const items = [...first.items];
  while (items.length < first.total) {
    const page = await client.getDocumentReceipt({ id, l: PAGE, u: items.length });
    if (page.items.length === 0) break;
    items.push(...page.items);
  }
  const reply = { ...first, items };
  print(...(json ? [JSON.stringify(reply, null, 2)] : describe(reply)));
  if (verify && reply.characters > 0 && reply.total > 0) {
    const sum = createHash('sha256')
      .update(await client.getDocumentContent({ id }))
      .digest('hex');
    if (sum !== (reply.sha256 ?? reply.held_sha256)) {
      throw new CliError('The text that the server sends is not the text that was read.');
    }
    if (!json) print(green('The text that the server sends has the SHA-256 of the receipt.'));
  }
  if (!reply.complete) throw new CliError('Characters of the text are in no memory, or were changed since.');
}

function describe(reply: ReceiptItem): string[] {
  const { characters, held, sha256, complete, items, omissions, warnings, stored, kept, removed } = reply;
  const rows = items.map((span) => [
    `  ${span.start_offset}–${span.end_offset}`,
    span.own_offset === span.start_offset ? '' : dim(`own from ${span.own_offset}`),
    span.memory_id,
    [span.kept ? dim('kept') : '', span.intact ? '' : red('changed')].filter(Boolean).join(' '),
  ]);
  const verdict = complete ? green('complete') : red('incomplete');
  return [
    `${bold(`${held} of ${counted(characters, 'character')} held`)}  ${verdict}`,
    dim(`  chunks: ${stored} stored, ${kept} kept, ${removed} removed`),
    ...(sha256 === null ? [] : [dim(`  sha256 ${sha256}`)]),
    ...(rows.length === 0 ? [] : ['', ...table(rows, '><<<')]),
    ...(omissions.length + warnings.length === 0 ? [] : ['', bold('Left out')]),
    ...omissions.map((left) => `  ${left.reason}  ${counted(left.characters, 'character')} in ${left.count}`),
    ...warnings.map(({ code, message }) => `  ${yellow(code)}  ${message}`),
  ];
}

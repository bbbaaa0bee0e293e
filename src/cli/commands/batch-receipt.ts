import type { BatchReceiptReply } from '../../api/schemas/receipts.ts';
import { CliError } from '../cli-error.ts';
import { connect } from '../client.ts';
import { bold, counted, dim, green, print, red, table } from '../terminal.ts';
import type { ReceiptOptions } from './receipt.ts';

/** Number of items of a batch's receipt that one request reads. */
const PAGE = 1_000;

/**
 * Runs `cairn receipt ID --batch`: prints which memory contains each item of a batch, and which items were refused and
 * why.
 * @throws CliError if the batch did not come to its end, or an item that was not refused is in no memory or was changed
 *   since; with exit code 2 for `verify`, which is for documents
 */
export async function batchReceipt(
  id: string,
  { json, verify, batch: _, ...connection }: ReceiptOptions,
): Promise<void> {
  if (verify)
    throw new CliError('--verify is for documents: each receipt of a batch is compared anyway', { exitCode: 2 });
  const client = connect(connection);
  const first = await client.getBatchReceipt({ id, l: PAGE });
  const items = [...first.items];
  while (items.length < first.total) {
    const page = await client.getBatchReceipt({ id, l: PAGE, u: items.length });
    if (page.items.length === 0) break;
    items.push(...page.items);
  }
  const receipt = { ...first, items };
  print(...(json ? [JSON.stringify(receipt, null, 2)] : describe(receipt)));
  if (!receipt.ended) throw new CliError('The batch did not come to its end: send what is missing here again.');
  if (!receipt.complete) throw new CliError('Items of the batch are in no memory, or were changed since.');
}

function describe({ characters, held, complete, ended, stored, merged, refused, items }: BatchReceiptReply): string[] {
  const rows = items.map(({ item, fate, memory_id: memory, held: isHeld, error }) => [
    `  ${item}`,
    fate === 'refused' ? red(fate) : fate,
    memory ?? (error === null ? red('gone') : ''),
    error === null ? (isHeld === false ? red('not as sent') : '') : dim(`${error.code}: ${error.message}`),
  ]);
  const verdict = complete ? green('complete') : red(ended ? 'incomplete' : 'broken off');
  return [
    `${bold(`${held} of ${counted(characters, 'character')} held`)}  ${verdict}`,
    dim(`  items: ${stored} stored, ${merged} merged, ${refused} refused`),
    ...(rows.length === 0 ? [] : ['', ...table(rows, '><<<')]),
  ];
}

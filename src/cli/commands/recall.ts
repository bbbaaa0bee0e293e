import type { RecalledItem, RecallItem, ReplayReplyItem } from '../../api/schemas/recalls.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { describeHits } from '../show-hits.ts';
import { bold, counted, dim, green, print, table, yellow } from '../terminal.ts';

export interface RecallOptions extends ConnectionOptions {
  /** The state to ask again of; left out, the recall is only shown. */
  readonly replay?: 'then' | 'now' | true;
  readonly json?: boolean;
}

/** Runs `cairn recall ID`: prints how an answer came about, or asks it again and prints what differs. */
export async function recall(id: string, { replay, json, ...connection }: RecallOptions): Promise<void> {
  const client = connect(connection);
  if (replay === undefined) {
    const reply = await client.getRecall({ id });
    return print(...(json ? [JSON.stringify(reply, null, 2)] : describeRecall(reply)));
  }
  const reply = await client.replayRecall({ id, state: replay === true ? 'then' : replay });
  print(...(json ? [JSON.stringify(reply, null, 2)] : describeReplay(reply)));
}

function describeRecall({ at, query, profile, weights, matches, left_out, missing, feedback }: RecallItem): string[] {
  const verdicts = new Map(feedback.map(({ memory_id, verdict }) => [memory_id, verdict]));
  const row = (item: RecalledItem) => [
    `  ${item.id}`,
    item.score.toFixed(3),
    dim(verdicts.get(item.id) ?? (item.outcome === 'returned' ? '' : item.outcome)),
  ];
  const read = Object.entries(weights).map(([name, weight]) => `${name} ${weight}`);
  return [
    `${bold(query ?? 'a question that is not kept')}  ${dim(new Date(at).toISOString())}`,
    dim(`  ${[profile, ...read].join(', ')}`),
    '',
    bold(counted(matches.length, 'match', 'matches')),
    ...table(matches.map(row), '<><'),
    ...missing.map((gone) => `  ${gone}  ${yellow('erased')}`),
    ...(left_out.length === 0 ? [] : ['', bold('Left out'), ...table(left_out.map(row), '<><')]),
  ];
}

function describeReplay(reply: ReplayReplyItem): string[] {
  const { state, query, matches, moved, gone, not_kept } = reply;
  const place = (from: number | null, to: number | null) => `${from ?? '–'} → ${to ?? '–'}`;
  const rows = [
    ...moved.map(({ id, from_rank, to_rank, why }) => [
      `  ${id}`,
      place(from_rank, to_rank),
      dim(why.map(({ what, from, to }) => `${what} ${shown(from)} → ${shown(to)}`).join(', ')),
    ]),
    ...gone.map(({ id, rank, why }) => [`  ${id}`, place(rank, null), yellow(why)]),
    ...reply.new.map(({ id, rank, why }) => [`  ${id}`, place(null, rank), green(why)]),
  ];
  return [
    ...(matches.length === 0 ? ['No memory matches.'] : describeHits(matches, query ?? '')),
    '',
    ...(rows.length === 0
      ? [dim(`Nothing differs from the answer of then${state === 'now' ? '' : ', as it was kept'}.`)]
      : [bold('What differs'), ...table(rows, '<<<')]),
    ...(not_kept.length === 0 ? [] : [dim(`Not kept: ${not_kept.join(', ')}`)]),
  ];
}

function shown(value: number | string | null): string {
  if (typeof value !== 'number') return value ?? 'nothing';
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}

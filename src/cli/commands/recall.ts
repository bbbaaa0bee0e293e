import type { RecalledItem, RecallItem, ReplayReplyItem } from '../../api/schemas/recalls.ts';
import type { FeedbackVerdict } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { describeHits } from '../show-hits.ts';
import { bold, counted, cut, dim, green, print, table, widthOfTerminal, yellow } from '../terminal.ts';

export interface RecallOptions extends ConnectionOptions {
  /**
   * Repeats the query of the recall (an answered query): with `then` (or `true`) on the candidates that its log entry
   * keeps, with `now` on the present memories. If it is undefined, the recall is only printed.
   */
  readonly replay?: 'then' | 'now' | true;
  /** Verdict on the memories named in `memory`. */
  readonly feedback?: FeedbackVerdict;
  readonly memory?: readonly string[];
  readonly json?: boolean;
}

/**
 * Runs `cairn recall ID`: prints how the answer to an earlier query (a recall) came about. With options it repeats the
 * query and prints the differences, or stores feedback on some matches.
 * @throws CliError for feedback without a memory, or a memory without feedback
 */
export async function recall(id: string, options: RecallOptions): Promise<void> {
  const { replay, json, feedback, memory = [], ...connection } = options;
  const client = connect(connection);
  if ((feedback === undefined) !== (memory.length === 0))
    throw new CliError('--feedback and --memory go together: name the matches that it is about', { exitCode: 2 });
  if (feedback !== undefined) {
    const reply = await client.giveRecallFeedback({ id, verdict: feedback, memory_ids: [...memory] });
    const rows = reply.feedback.map(({ memory_id, verdict }) => [memory_id, verdict]);
    return print(...(json ? [JSON.stringify(reply, null, 2)] : table(rows, '<<')));
  }
  if (replay === undefined) {
    const reply = await client.getRecall({ id });
    return print(...(json ? [JSON.stringify(reply, null, 2)] : describeRecall(reply)));
  }
  const reply = await client.replayRecall({ id, state: replay === true ? 'then' : replay });
  print(...(json ? [JSON.stringify(reply, null, 2)] : describeReplay(reply)));
}

export interface RecallsOptions extends ConnectionOptions {
  readonly user?: string;
  readonly memory?: string;
  readonly limit: number;
  readonly json?: boolean;
}

/**
 * Runs `cairn recalls`: prints the latest recalls (answers that the server gave to queries), newest first, at most
 * `limit`.
 */
export async function recalls({ user, memory, limit, json, ...connection }: RecallsOptions): Promise<void> {
  const reply = await connect(connection).listRecalls({ user_id: user, memory_id: memory, limit });
  if (json) return print(JSON.stringify(reply, null, 2));
  if (reply.items.length === 0) return print('No answer is kept.');
  const rows = reply.items.map(({ recall_id: id, at, query, matches }) => [
    id,
    dim(new Date(at).toISOString()),
    counted(matches, 'match', 'matches'),
    cut(query ?? 'a question that is not kept', Math.max(20, widthOfTerminal() - 78)),
  ]);
  print(...table(rows, '<<><'));
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

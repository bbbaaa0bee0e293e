/**
 * Counts the work of conditions that run on the server, and that parse the JSON of each row or count each row
 * (`countingRows`), against the work budget of the request.
 */
import { noteWork, workLeft } from '../work-budget.ts';
import type { BlockingConnection, Queued } from './blocking-connection.ts';

/** SQL that sets what is left of the work of a query: the time at which it ends, and the number of bytes. */
const LIMIT_WORK = `SELECT set_config('cairn.work_until',
    (extract(epoch FROM clock_timestamp()) + $1::bigint / 1000.0)::text, true),
  set_config('cairn.work_left', $2::bigint::text, true)`;
/** SQL that reads how many bytes of work a query has left. */
const READ_WORK_LEFT = `SELECT current_setting('cairn.work_left')::bigint`;

/** Whether a statement counts its work now: it has such conditions, and its request has a work budget. */
export function isCounted(sql: string): boolean {
  return workLeft().ms !== Infinity && /\b(?:may_work|tags_pass|metadata_passes|value_passes)\(/.test(sql);
}

/**
 * Queues a query that `isCounted`, so that it ends with the work budget of the present `runWithin`. When its result is
 * read, what it used is subtracted from that budget. Call inside a transaction.
 */
export function queueWithinBudget(
  connection: Pick<BlockingConnection, 'queue'>,
  { text, values, name, portion }: Omit<Parameters<BlockingConnection['queue']>[0], 'merge'>,
): Queued {
  const { ms, bytes } = workLeft();
  const given = Math.floor(bytes);
  // Later than the deadline here, so that a statement that the server ends is known to have been ended.
  connection.queue({ text: LIMIT_WORK, values: [Math.ceil(ms) + 1, given], name: 'limit-work' });
  const query = connection.queue({ text, values, name, portion });
  const rest = connection.queue({ text: READ_WORK_LEFT, values: [], name: 'work-left' });
  let isNoted = false;
  return {
    result() {
      const result = query.result();
      if (!isNoted) noteWork(given - Number(rest.result().rows[0]![0]));
      isNoted = true;
      return result;
    },
    get isWaiting() {
      return query.isWaiting;
    },
  };
}

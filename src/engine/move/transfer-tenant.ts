/** Copies one tenant from the source of a move to its target, and checks that both give the same. */

import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import { countLongAddresses, countZeroLabels, requireSameColumns } from '../store/postgres/moved-file.ts';
import type { MovedColumns } from '../store/postgres/moved-tables.ts';
import { findInfo } from '../store/store-info.ts';
import { REBUILDING } from '../tenant-file/open-tenant.ts';
import { compareAnswers } from './compare-answers.ts';
import { compareTenants, copyTenant, countWork, haveEqualWords } from './copy-tenant.ts';
import type { MovedTenant, MoveSource, MoveTarget } from './places.ts';

/** Progress display of one step of a move. */
interface MoveProgress {
  update(done: number, note?: string): void;
  stop(): void;
}

/** Shows a new step with its name and its total amount of work, and returns its progress display. */
export type ShowProgress = (label: string, total: number) => MoveProgress;

/** What a transfer works with. */
export interface TransferContext {
  /** Settings with which the questions are answered. */
  readonly config: Config;
  readonly source: Pick<MoveSource, 'open'>;
  readonly target: Pick<MoveTarget, 'make'>;
  readonly columns: MovedColumns;
  /** Present time, Unix ms. */
  readonly now: number;
  readonly showProgress: ShowProgress;
}

/**
 * Copies one tenant, compares the copy with the original, and asks both the same questions. If an original in a file
 * has other words in its index than the copy, the original is indexed anew. After an error the copy stays at the
 * target.
 * @returns the number of memories and of questions; both are 0 for a tenant that was never used
 * @throws EngineError `internal` if the copy differs; `unprocessable` if the tenant cannot be moved or answers differ
 */
export async function transferTenant(
  context: TransferContext,
  id: string,
): Promise<{ readonly memories: number; readonly questions: number }> {
  const from = context.source.open(id);
  if (from === undefined) return { memories: 0, questions: 0 };
  let to: MovedTenant | undefined;
  try {
    requireMovable(from, context.columns);
    to = context.target.make(id);
    copyAndCompare(context, id, from, to);
    const memories = from.rows.count('memories');
    const progress = context.showProgress(`Asking ${id}`, Math.min(memories, 200));
    try {
      const onProgress = (done: number) => progress.update(done, `${done} questions`);
      const { questions, different } = await compareAnswers(from, to, {
        config: context.config,
        now: context.now,
        onProgress,
      });
      if (different > 0) {
        throw new EngineError(
          'unprocessable',
          `${different} of ${questions} questions had other answers: not moved. If an earlier version ` +
            `wrote this tenant, run \`cairn rebuild-index\` on it first`,
        );
      }
      return { memories, questions };
    } finally {
      progress.stop();
    }
  } finally {
    to?.close();
    from.close();
  }
}

/**
 * Throws EngineError `unprocessable` for a tenant that the other database engine cannot hold, or whose index is
 * incomplete.
 */
function requireMovable(from: MovedTenant, columns: MovedColumns): void {
  if (findInfo(from.store, REBUILDING) !== undefined)
    throw new EngineError('unprocessable', 'a rebuild of its index was broken off: run `cairn rebuild-index` first');
  if (!('db' in from.store)) return;
  const file = from.store as Parameters<typeof requireSameColumns>[0];
  requireSameColumns(file, columns);
  const zeros = countZeroLabels(file);
  if (zeros > 0) {
    throw new EngineError(
      'unprocessable',
      `${zeros} memories have U+0000 in their tags or files, which PostgreSQL cannot hold: change them first`,
    );
  }
  const long = countLongAddresses(file);
  if (long > 0) {
    throw new EngineError(
      'unprocessable',
      `${long} pages have too long a user and URL for PostgreSQL: delete them, and add them with an external_id`,
    );
  }
}

function copyAndCompare(context: TransferContext, id: string, from: MovedTenant, to: MovedTenant): void {
  const { columns, showProgress } = context;
  const progress = showProgress(`Moving ${id}`, countWork(from));
  let done = 0;
  const onRows = (rows: number) => progress.update((done += rows));
  try {
    const digests = copyTenant(from, to, { columns, onRows });
    if (!haveEqualWords(from, to)) rewriteWords(context, id, from);
    compareTenants(from, to, { columns, digests, onRows });
  } finally {
    progress.stop();
  }
}

/** Writes the words of the original anew: after an upgrade its index may have those of an earlier version. */
function rewriteWords(
  { showProgress }: TransferContext,
  id: string,
  { rows, rewriteWords: rewrite }: MovedTenant,
): void {
  if (rewrite === null) return;
  const progress = showProgress(`Words of ${id}`, rows.count('memories'));
  try {
    rewrite((done) => progress.update(done));
  } finally {
    progress.stop();
  }
}

/** Finds the documents of a run that were not sent or could not be processed, and prints each with the reason. */
import { awaitDocuments } from './await-documents.ts';
import { RefusalError, type Client } from './client.ts';
import { ChangedFileError } from './file-form.ts';
import { startProgress } from './progress.ts';
import type { DocumentItem, SentDocument } from './send-documents.ts';
import { bold, count, oneLine, print, red, table, tally } from './terminal.ts';

/** A document that was not stored, or that the server could not process, with the reason. */
export interface Failure {
  readonly name: string;
  readonly code: string;
  readonly message: string;
}

const FAILURES_SHOWN = 50;

/**
 * Tells whether an error concerns a single document, so that the other documents can still be sent: a file that changed
 * or cannot be read, or a refusal by the server. An unreachable server and a status 401 concern all documents. So does
 * a 403, except for a web page.
 * @param options `isPage` is true if the document is a web page that the server fetches
 */
export function concernsOne(
  error: unknown,
  { isPage = false }: { readonly isPage?: boolean } = {},
): error is RefusalError | ChangedFileError | NodeJS.ErrnoException {
  if (error instanceof RefusalError) return error.status !== 401 && (error.status !== 403 || isPage);
  return error instanceof ChangedFileError || (error instanceof Error && 'syscall' in error && 'code' in error);
}

/** Makes the failure of a document that was not sent, from an error for which `concernsOne` is true. */
export function describeFailure(name: string, error: RefusalError | ChangedFileError | NodeJS.ErrnoException): Failure {
  if (error instanceof RefusalError) return { name, code: error.code, message: error.message };
  const message = error instanceof ChangedFileError ? error.message : `it cannot be read (${error.code})`;
  return { name, code: 'unreadable', message };
}

/**
 * Waits until the server has finished processing all documents, with a progress bar, and prints how many are in each
 * state.
 * @returns a failure for each document that did not become `ready` or `empty`, or was deleted meanwhile
 * @throws what `awaitDocuments` throws
 */
export async function waitForAll(client: Client, sent: ReadonlyMap<string, SentDocument>): Promise<Failure[]> {
  // Files with the same content are one document.
  const ids = new Set([...sent.values()].map(({ id }) => id));
  const progress = startProgress('Reading', ids.size);
  const show = (finished: number) => progress.update(finished, `${count(finished)} of ${count(ids.size)}`);
  const finished = await awaitDocuments(client, ids, show).finally(() => progress.stop());
  const states = Map.groupBy(ids, (id) => finished.get(id)?.state ?? 'unfinished');
  const counts = [...states].map(([state, ids]): [string, number] => [STATES[state] ?? state, ids.length]);
  if (counts.length > 0) print(tally(counts));
  return failuresOf(sent, finished);
}

/**
 * Returns a failure for each document that did not become `ready` or `empty`, or is missing in `finished`.
 * @param sent the documents that were sent, by the names that messages show
 * @param finished the finished documents by id, as `awaitDocuments` returns them
 */
export function failuresOf(
  sent: ReadonlyMap<string, SentDocument>,
  finished: ReadonlyMap<string, DocumentItem>,
): Failure[] {
  return [...sent].flatMap(([name, { id }]) => {
    const state = finished.get(id)?.state;
    if (state === 'ready' || state === 'empty') return [];
    if (state === undefined) return [{ name, code: 'unfinished', message: 'deleted meanwhile, or still being read' }];
    const { code, message } = finished.get(id)!.error ?? { code: state, message: '' };
    return [{ name, code, message }];
  });
}

const STATES: Readonly<Record<string, string>> = { empty: 'without text' };

/** Prints failures as a table of at most 50 rows, and makes the exit code 1. Without failures it does nothing. */
export function reportFailures(failures: readonly Failure[]): void {
  if (failures.length === 0) return;
  const rows = failures
    .slice(0, FAILURES_SHOWN)
    .map(({ name, code, message }) => [oneLine(name), red(oneLine(code)), oneLine(message)]);
  print('', ...table([['document', 'code', 'reason'].map(bold), ...rows], '<<<'));
  if (failures.length > rows.length) print(`and ${count(failures.length - rows.length)} more`);
  process.exitCode = 1;
}

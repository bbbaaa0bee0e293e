import fs from 'node:fs';
import path from 'node:path';
import { awaitDocuments } from '../await-documents.ts';
import { CliError } from '../cli-error.ts';
import { connect, ConnectionError, RefusalError, type Client, type ConnectionOptions } from '../client.ts';
import { failuresOf, reportFailures, waitForAll, type Failure } from '../document-failures.ts';
import { listenToFolders } from '../folder-hints.ts';
import { createFolderSync, type Change, type FolderSync, type Pass } from '../folder-sync.ts';
import { counted, dim, oneLine, print, red, tally, yellow } from '../terminal.ts';

export interface WatchCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly session?: string;
  readonly tag?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Patterns of paths below the folder; a file must match one of them. By default all files are included. */
  readonly only?: readonly string[];
  /** True to end after one pass over the folder, once the server has processed the documents that it sent. */
  readonly once?: boolean;
  /**
   * True if the passes up to the first one that is not unfinished may delete the documents of missing files even if
   * these are all documents, or more than ten and more than half of them.
   */
  readonly yes?: boolean;
}

/**
 * Longest pause between two passes over the folder (ms), while they succeed. A change that the operating system reports
 * starts a pass sooner.
 */
const PASS_EVERY_MS = 10_000;
/**
 * Pause before the next pass if a pass could not finish everything, such as a file that changed while it was sent (ms).
 */
const FOLLOW_UP_MS = 1_000;
/** Time for which a file must be missing until its document is deleted (ms); with `once` it is 0. */
const GRACE_MS = 2_000;
/**
 * Time after which a pass compares the files with the server's documents anew (ms). The list has 1,000 documents a
 * request.
 */
const LIST_EVERY_MS = 300_000;
/**
 * First and longest pause before the next attempt while the server cannot be reached (ms). The pause doubles each time.
 */
const AWAY_MS = { first: 1_000, last: 30_000 };
const KINDS = ['new', 'changed', 'renamed', 'removed', 'refused'] as const;

/**
 * Runs `cairn watch FOLDER`: keeps the documents on the server equal to the files of a folder, until the command is
 * ended. With `once` it does so in a single pass.
 * @throws CliError if the target is not a folder; with `once` also if documents of missing files were kept; the file
 *   system's error if there is no such target; what a pass throws, without `once` only for a permanent failure such as
 *   a wrong key
 */
export async function watch(target: string, options: WatchCommandOptions): Promise<void> {
  const folder = path.resolve(target);
  if (!fs.statSync(folder).isDirectory())
    throw new CliError(`${target} is no folder: \`cairn ingest\` takes single files`);
  const { user = '', session = '', tag = [], metadata = {}, only = [], once = false } = options;
  const client = connect(options);
  const changes: Change[] = [];
  const sync = createFolderSync({
    client,
    folder,
    shared: { user, session, tags: tag, metadata },
    wants: (inside) => only.length === 0 || only.some((pattern) => path.matchesGlob(inside, pattern)),
    graceMs: once ? 0 : GRACE_MS,
    listEveryMs: LIST_EVERY_MS,
    onChange(change) {
      if (!once) return say(lineOf(change));
      changes.push(change);
      if (change.kind !== 'refused') print(lineOf(change));
    },
    onWait: (reason) => say(dim(`waiting: ${oneLine(reason)}`)),
  });
  if (!once) return follow(sync, client, { target, options });

  const pass = await sync.pass({ mayRemoveMost: options.yes === true });
  const counts = KINDS.map((kind): [string, number] => [kind, changes.filter((one) => one.kind === kind).length]);
  print(`${counted(pass.files, 'file')}: ${tally([...counts, ['known already', pass.known]])}`);
  const refused = changes.flatMap((change) => (change.kind === 'refused' ? [change.failure] : []));
  reportFailures([...refused, ...(await waitForAll(client, pass.sent))]);
  if (pass.held > 0) throw new CliError(heldLine(pass.held, target));
}

interface Watched {
  /** Path of the folder as the user typed it, for messages. */
  readonly target: string;
  readonly options: WatchCommandOptions;
}

/**
 * Runs a pass whenever something may have changed in the folder, and at least every 10 s. A temporary failure is
 * printed once, and passes are tried again, after pauses of up to 30 s.
 */
async function follow(sync: FolderSync, client: Client, { target, options }: Watched): Promise<never> {
  endOnSignals();
  const hints = listenToFolders();
  let trouble = '';
  let awayMs = AWAY_MS.first;
  let held = 0;
  // A file that the first pass finds missing is due in the next one.
  let mayRemoveMost = options.yes === true;
  for (let isFirst = true; ;) {
    let waitMs = PASS_EVERY_MS;
    try {
      const pass = await sync.pass({ mayRemoveMost });
      mayRemoveMost &&= pass.isUnfinished;
      hints.follow(pass.folders);
      if (isFirst) say(`watching ${target}: ${counted(pass.files, 'file')} in step, until you end it with Ctrl-C`);
      else if (trouble !== '') say('in step again');
      if (pass.held > held) say(yellow(heldLine(pass.held, target)));
      void reportReading(client, pass);
      [trouble, awayMs, held, isFirst] = ['', AWAY_MS.first, pass.held, false];
      if (pass.isUnfinished) waitMs = FOLLOW_UP_MS;
    } catch (error) {
      const reason = describeTrouble(error);
      if (reason === undefined) throw error;
      if (reason !== trouble) say(yellow(reason));
      trouble = reason;
      waitMs = awayMs;
      awayMs = Math.min(AWAY_MS.last, awayMs * 2);
    }
    await hints.wait(waitMs);
  }
}

/**
 * Ends the process at the first signal, even during a pass. The first pass of the next run then does what is missing.
 */
function endOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      say('ended');
      process.exit(0);
    });
  }
}

/**
 * Returns a message for a temporary failure, such as a server that cannot be reached; undefined for any other failure,
 * such as a wrong key.
 */
function describeTrouble(error: unknown): string | undefined {
  if (error instanceof ConnectionError) return `${error.message}; it is tried again`;
  if (error instanceof RefusalError) {
    const isBusy = error.status === 429 || error.status >= 500;
    return isBusy ? `the server refuses: ${oneLine(error.message)}; it is tried again` : undefined;
  }
  const { code, path: place = '' } = error as NodeJS.ErrnoException;
  if (!(error instanceof Error && 'syscall' in error)) return undefined;
  return `the folder cannot be looked through, and nothing is removed meanwhile: ${code} ${oneLine(place)}`;
}

/** Waits until the server has processed the documents that a pass sent, and prints those that it could not process. */
async function reportReading(client: Client, { sent }: Pass): Promise<void> {
  try {
    const ids = new Set([...sent.values()].map(({ id }) => id));
    const failures = failuresOf(sent, await awaitDocuments(client, ids, () => {}));
    for (const failure of failures) if (failure.code !== 'unfinished') say(failureLine(failure));
  } catch (error) {
    // If the server is away or refuses, the next pass meets and shows the failure, and sends again what was not read.
    if (!(error instanceof CliError)) throw error;
  }
}

function lineOf(change: Change): string {
  if (change.kind === 'refused') return failureLine(change.failure);
  const from = change.kind === 'renamed' ? `${oneLine(change.from)} -> ` : '';
  return `${change.kind.padEnd('changed'.length)}  ${from}${oneLine(change.path)}`;
}

function failureLine({ name, code, message }: Failure): string {
  return `${red('failed')}   ${oneLine(name)}: ${oneLine(message) || code}`;
}

function heldLine(held: number, target: string): string {
  return (
    `the files of ${counted(held, 'document')} are missing, which is all or most of the folder: the documents stay, ` +
    `in case a disk is not there; \`cairn watch ${target} --once --yes\` removes them`
  );
}

function say(line: string): void {
  print(`${dim(new Date().toTimeString().slice(0, 8))}  ${line}`);
}

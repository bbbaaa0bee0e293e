import pLimit from 'p-limit';
import { awaitDocuments } from '../await-documents.ts';
import { CliError } from '../cli-error.ts';
import { connect, ConnectionError, RefusalError, type Client, type ConnectionOptions } from '../client.ts';
import { ChangedFileError } from '../file-form.ts';
import { findFiles } from '../find-files.ts';
import { startProgress } from '../progress.ts';
import {
  createFileSender,
  sendPage,
  type SharedFields,
  type SendOutcome,
  type SentDocument,
} from '../send-documents.ts';
import { bold, bytes, count, counted, oneLine, print, red, span, table } from '../terminal.ts';

export interface IngestCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly session?: string;
  readonly tag?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Whether to wait until the documents are read; false with --no-wait. */
  readonly wait: boolean;
}

/** A file or a URL under the name that the user gave. */
interface Source {
  readonly name: string;
  readonly kind: 'file' | 'page';
  /** Size of the file; 0 for a page. */
  readonly bytes: number;
}

interface Failure {
  readonly name: string;
  readonly code: string;
  readonly message: string;
}

const UPLOADS_AT_ONCE = 4;
const FAILURES_SHOWN = 50;

/**
 * Runs `cairn ingest PATH… | URL…`: sends files and URLs, and waits until they are read unless `wait` is false. If a
 * document fails, the exit code is 1.
 */
export async function ingest(targets: readonly string[], options: IngestCommandOptions): Promise<void> {
  const client = connect(options);
  const shared = sharedFieldsOf(options);
  const { sources, skipped } = findSources(targets);
  if (skipped.size > 0) print(`skipped: ${tally(skipped)}`);
  if (sources.length === 0) throw new CliError('nothing to ingest: no file of a type that can be read was found');

  const startedAt = performance.now();
  const { sent, refused } = await sendAll(client, sources, shared);
  print(describeSent(sources, { sent, refused, ms: performance.now() - startedAt }));
  const failed = options.wait ? await waitForAll(client, sent) : [];
  if (!options.wait && sent.size > 0) print('they are read in the background: `cairn jobs` shows the progress');
  reportFailures([...refused, ...failed]);
}

function sharedFieldsOf({ user = '', session = '', tag = [], metadata = {} }: IngestCommandOptions): SharedFields {
  return { user, session, tags: tag, metadata };
}

function findSources(targets: readonly string[]): { sources: Source[]; skipped: ReadonlyMap<string, number> } {
  const isUrl = (target: string) => /^https?:\/\//i.test(target);
  const { files, skipped } = findFiles(targets.filter((target) => !isUrl(target)));
  const pages = [...new Set(targets.filter(isUrl))].map((name) => ({ name, kind: 'page' as const, bytes: 0 }));
  return {
    sources: [...files.map((file) => ({ name: file.path, kind: 'file' as const, bytes: file.bytes })), ...pages],
    skipped,
  };
}

// ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface SendResult {
  readonly sent: Map<string, SentDocument>;
  readonly refused: Failure[];
}

async function sendAll(client: Client, sources: readonly Source[], shared: SharedFields): Promise<SendResult> {
  const result: SendResult = { sent: new Map(), refused: [] };
  const meter = createMeter(sources);
  const progress = startProgress('Sending', meter.total);
  const onWait = (reason: string) => {
    const [done, note] = meter.state();
    progress.update(done, `${note} · waiting: ${oneLine(reason)}`);
  };
  const sendFile = createFileSender(client, shared, onWait);
  const send = async (source: Source) => {
    const { name, kind } = source;
    try {
      result.sent.set(name, await (kind === 'page' ? sendPage(client, name, shared, onWait) : sendFile(name)));
    } catch (error) {
      if (!concernsOne(source, error)) throw error;
      result.refused.push(describeFailure(source, error));
    }
    meter.add(source);
    progress.update(...meter.state());
  };
  try {
    await pLimit(UPLOADS_AT_ONCE).map(sources, send);
  } catch (error) {
    if (!(error instanceof ConnectionError) || meter.done() === 0) throw error;
    throw new CliError(
      `the connection broke off after ${count(meter.done())} of ${counted(sources.length, 'document')}: ` +
        'run the same command again, what is stored already is recognised',
      { cause: error },
    );
  } finally {
    progress.stop();
  }
  return result;
}

/** Whether an error concerns one document only; an unreachable server or a wrong key concerns all of them. */
function concernsOne(
  { kind }: Source,
  error: unknown,
): error is RefusalError | ChangedFileError | NodeJS.ErrnoException {
  if (error instanceof RefusalError) return error.status !== 401 && (error.status !== 403 || kind === 'page');
  return error instanceof ChangedFileError || (error instanceof Error && 'syscall' in error && 'code' in error);
}

function describeFailure({ name }: Source, error: RefusalError | ChangedFileError | NodeJS.ErrnoException): Failure {
  if (error instanceof RefusalError) return { name, code: error.code, message: error.message };
  const message = error instanceof ChangedFileError ? error.message : `it cannot be read (${error.code})`;
  return { name, code: 'unreadable', message };
}

/** Measures progress in bytes, or in documents if all sources are pages, whose size is not known. */
function createMeter(sources: readonly Source[]) {
  const startedAt = performance.now();
  const totalBytes = sources.reduce((sum, source) => sum + source.bytes, 0);
  let documents = 0;
  let sent = 0;
  return {
    total: totalBytes || sources.length,
    done: () => documents,
    add(source: Source): void {
      documents++;
      sent += source.bytes;
    },
    state(): [done: number, note: string] {
      const rate = sent / ((performance.now() - startedAt) / 1000);
      const size = totalBytes === 0 ? '' : ` · ${bytes(sent)} · ${bytes(rate)}/s`;
      return [totalBytes === 0 ? documents : sent, `${count(documents)} of ${count(sources.length)}${size}`];
    },
  };
}

const OUTCOMES: readonly (readonly [words: string, outcomes: readonly SendOutcome[]])[] = [
  ['new', ['accepted']],
  ['replaced', ['replaced']],
  ['known already', ['unchanged', 'known']],
];

function describeSent(sources: readonly Source[], { sent, refused, ms }: SendResult & { readonly ms: number }): string {
  const size = sources.reduce((sum, source) => sum + source.bytes, 0);
  const counts = OUTCOMES.map(([words, outcomes]): [string, number] => [
    words,
    [...sent.values()].filter(({ outcome }) => outcomes.includes(outcome)).length,
  ]);
  const results = tally([...counts, ['refused', refused.length]]);
  return `${counted(sources.length, 'document')} (${bytes(size)}) in ${span(ms)}: ${results}`;
}

function tally(counts: Iterable<readonly [string, number]>): string {
  return [...counts].map(([what, number]) => `${count(number)} ${what}`).join(', ');
}

// ── Waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Waits until all documents have ended. Returns those that did not become `ready` or `empty`. */
async function waitForAll(client: Client, sent: ReadonlyMap<string, SentDocument>): Promise<Failure[]> {
  // Files with the same content are one document.
  const ids = new Set([...sent.values()].map(({ id }) => id));
  const progress = startProgress('Reading', ids.size);
  const show = (settled: number) => progress.update(settled, `${count(settled)} of ${count(ids.size)}`);
  const settled = await awaitDocuments(client, ids, show).finally(() => progress.stop());
  const states = Map.groupBy(ids, (id) => settled.get(id)?.state ?? 'unfinished');
  const counts = [...states].map(([state, ids]): [string, number] => [STATES[state] ?? state, ids.length]);
  if (counts.length > 0) print(tally(counts));
  return [...sent].flatMap(([name, { id }]) => {
    const state = settled.get(id)?.state;
    if (state === 'ready' || state === 'empty') return [];
    if (state === undefined) return [{ name, code: 'unfinished', message: 'deleted meanwhile, or still being read' }];
    const { code, message } = settled.get(id)!.error ?? { code: state, message: '' };
    return [{ name, code, message }];
  });
}

const STATES: Readonly<Record<string, string>> = { empty: 'without text' };

function reportFailures(failures: readonly Failure[]): void {
  if (failures.length === 0) return;
  const rows = failures
    .slice(0, FAILURES_SHOWN)
    .map(({ name, code, message }) => [oneLine(name), red(oneLine(code)), oneLine(message)]);
  print('', ...table([['document', 'code', 'reason'].map(bold), ...rows], '<<<'));
  if (failures.length > rows.length) print(`and ${count(failures.length - rows.length)} more`);
  process.exitCode = 1;
}

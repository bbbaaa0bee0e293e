import pLimit from 'p-limit';
import { CliError } from '../cli-error.ts';
import { connect, ConnectionError, type Client, type ConnectionOptions } from '../client.ts';
import { concernsOne, describeFailure, reportFailures, waitForAll, type Failure } from '../document-failures.ts';
import { findFiles } from '../find-files.ts';
import { startProgress } from '../progress.ts';
import {
  createFileSender,
  sendPage,
  type SharedFields,
  type SendOutcome,
  type SentDocument,
} from '../send-documents.ts';
import { bytes, count, counted, oneLine, print, span, tally } from '../terminal.ts';

export interface IngestCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly session?: string;
  readonly tag?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Whether to wait until the server has processed the documents; false with --no-wait. */
  readonly wait: boolean;
}

/** A file or a web page, under the name that the user gave. */
interface Source {
  readonly name: string;
  readonly kind: 'file' | 'page';
  /** Size of the file in bytes; 0 for a page. */
  readonly bytes: number;
}

const UPLOADS_AT_ONCE = 4;

/**
 * Runs `cairn ingest PATH… | URL…`: sends files and URLs as documents, and waits until the server has processed them,
 * unless `wait` is false. If a document was refused or could not be processed, the exit code is 1.
 * @throws CliError if there is nothing to send, or the connection breaks off
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
      if (!concernsOne(error, { isPage: kind === 'page' })) throw error;
      result.refused.push(describeFailure(name, error));
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

/**
 * Makes the measure for the progress bar: bytes, or the number of documents if all sources are web pages, whose size is
 * not known.
 */
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

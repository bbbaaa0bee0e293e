import { createHash, type Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { z } from 'zod';
import { EngineError, type ImportOutcome, PORTABLE_VERSION, type PortableLine } from '../../engine/index.ts';
import { logFailure, toEngineError } from '../http-errors.ts';
import { IDLE_MS, streamedResults } from '../line-results.ts';
import { groupsOf, type Line, linesOf } from '../lines.ts';
import { parseJson } from '../read-body.ts';
import { takeTokens } from '../rate-limits.ts';
import { localsOf } from '../reply.ts';
import type { TenantCall } from '../route.ts';
import { parse } from '../schemas/parse.ts';
import { endLine, headLine, LINE_SCHEMAS } from '../schemas/portable.ts';
import { type ItemError, isItemError, itemError, orItemError } from './batch-items.ts';
import { importConfiguration, isConfiguration } from './configuration-lines.ts';

/** Longest line: a memory with its value and its vectors. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
/** A line holds what came in several bodies, such as metadata, value and text; none that was exported has as many. */
const LINE_BOUNDS = { values: 1_000_000, names: 500_000 };
/** Lines stored in one transaction. */
const GROUP_LINES = 128;
/** Groups on their way to the disk: while one is stored, two more are parsed, and then share a transaction. */
const GROUPS_UNDER_WAY = 3;
/** Most ids that are remembered of memories which stayed as they are; each takes some 100 bytes. */
const MAX_KEPT = 200_000;
/** Most names of unknown fields that are kept, and most characters of each. */
const MAX_NAMES = 100;
const NAME_CHARACTERS = 64;

/** How an import treats its lines. */
export interface ImportRequest {
  readonly dryRun: boolean;
  /** Lines before this one are passed over; 1 for none. */
  readonly fromLine: number;
  /** Users by the names that they have in the file. */
  readonly users: ReadonlyMap<string, string>;
}

/**
 * Answers `POST /import` with NDJSON, while the lines of `body` arrive. No more is read while `GROUPS_UNDER_WAY` groups
 * are not on disk, and they get there in the order of the file. A failure of the storage, or a revoked key, ends the
 * import: the summary then has an `error`, and what was answered before is stored.
 */
export async function importLines(call: TenantCall, body: Readable, asked: ImportRequest): Promise<void> {
  const { api, principal, request, response } = call;
  // The key is checked before each group, so that the summary still says what is stored.
  localsOf(response).onAdmissionLost = () => {};
  request.setTimeout(IDLE_MS, () => request.destroy());
  const results = streamedResults(response, 200, api.engine.config.OM_READER_TIMEOUT_MS);
  const session = new ImportSession(call, asked);
  // A dry run remembers what the lines before would have stored, so it judges one group after the other.
  const mostUnderWay = asked.dryRun ? 1 : GROUPS_UNDER_WAY;
  const underWay: Promise<readonly object[]>[] = [];
  const answerFirst = async () => {
    for (const result of await underWay[0]!) results.push(result);
    void underWay.shift();
    await results.flush();
  };
  try {
    for await (const group of groupsOf(linesOf(body, { maxBytes: MAX_LINE_BYTES }), GROUP_LINES)) {
      if (!api.engine.control.isHolderValid(principal))
        throw new EngineError('unauthenticated', 'this key has expired or was revoked');
      takeTokens(call, 'batch_items', group.length);
      const taking = session.take(group);
      taking.catch(() => {}); // It is told when its turn comes.
      if (underWay.push(taking) === mostUnderWay) await answerFirst();
    }
    while (underWay.length > 0) await answerFirst();
  } catch (thrown) {
    // The groups after the failed one may be stored: they are counted, and not answered.
    await Promise.allSettled(underWay);
    if (response.destroyed || !response.headersSent) throw thrown;
    logFailure(api.engine.logger, toEngineError(thrown), localsOf(response).requestId);
    return results.end({ ...session.summary(false), ...itemError(thrown) });
  }
  results.end(session.summary(true));
}

/** A line that was parsed: what is to be imported, or nothing for the first and the last line of a file. */
type Parsed = { readonly line: PortableLine } | { readonly line: null };

/** One import under way. */
class ImportSession {
  readonly #call: TenantCall;
  readonly #asked: ImportRequest;
  readonly #target: Pick<TenantCall['tenant'], 'importLines'>;
  readonly #hash: Hash = createHash('sha256');
  readonly #counts = {
    stored: new Counter(),
    known: new Counter(),
    kept: new Counter(),
    refused: new Counter(),
    unknown: new Counter(),
  };
  /** Ids of memories that were kept as they are here, some of which are here no more. */
  readonly #keptIds = new Set<string>();
  #isComplete = false;
  #checksum: 'match' | 'differs' | 'absent' = 'absent';

  constructor(call: TenantCall, asked: ImportRequest) {
    this.#call = call;
    this.#asked = asked;
    this.#target = asked.dryRun ? call.tenant.rehearseImport() : call.tenant;
  }

  /**
   * Imports a group of lines. The lines are parsed before this returns its promise, so that groups are parsed in order.
   * @returns the results of those that were refused, and the progress
   */
  async take(group: readonly Line[]): Promise<readonly object[]> {
    const parsed = group
      .map((line) => ({ number: line.number, read: this.#read(line) }))
      .filter(({ number }) => number >= this.#asked.fromLine);
    const lines = parsed.flatMap(({ read }) => (isItemError(read) || read.line === null ? [] : [read.line]));
    const outcomes = (await this.#import(lines)).values();
    const refusals: object[] = [];
    for (const { number, read } of parsed) {
      if (isItemError(read)) {
        this.#counts.refused.add('line');
        refusals.push({ line: number, ...read });
      } else if (read.line !== null) {
        const outcome = outcomes.next().value!;
        if (outcome.kind !== 'read') this.#counts[outcome.kind].add(read.line.type);
        if (outcome.kind === 'refused') refusals.push({ line: number, error: outcome.error });
      }
    }
    const { stored, known, kept } = this.#counts;
    const progress = stored.total + known.total + kept.total;
    return [...refusals, { line: group.at(-1)!.number, progress }];
  }

  summary(isDone: boolean): object {
    const { stored, known, kept, refused, unknown } = this.#counts;
    return {
      done: isDone,
      dry_run: this.#asked.dryRun,
      complete: this.#isComplete,
      checksum: this.#checksum,
      stored: stored.toObject(),
      known: known.toObject(),
      kept: kept.toObject(),
      refused: refused.toObject(),
      unknown_fields: unknown.toObject(),
    };
  }

  #read({ number, bytes }: Line): Parsed | ItemError {
    if (bytes === null) return itemError(new EngineError('too_large', `the line is over ${MAX_LINE_BYTES} bytes`));
    const isLast = isEnd(bytes);
    if (!isLast) this.#hash.update(bytes).update('\n');
    if (number < this.#asked.fromLine && !isLast) return { line: null };
    return orItemError(() => this.#parse(parseJson(bytes, LINE_BOUNDS)));
  }

  #parse(value: unknown): Parsed {
    const type = (value as { readonly type?: unknown } | null)?.type;
    if (this.#isComplete) throw new EngineError('invalid', 'a line after the last line of the export');
    if (type === 'cairn.export') {
      const { version } = parse(headLine, value);
      if (version > PORTABLE_VERSION)
        throw new EngineError('invalid', `version: ${version} is newer than ${PORTABLE_VERSION}; update this server`);
      return { line: null };
    }
    if (type === 'end') {
      const { sha256 } = parse(endLine, value);
      this.#isComplete = true;
      if (sha256 !== undefined) this.#checksum = sha256 === this.#hash.copy().digest('hex') ? 'match' : 'differs';
      return { line: null };
    }
    if (typeof type !== 'string' || !Object.hasOwn(LINE_SCHEMAS, type)) {
      const known = ['cairn.export', ...Object.keys(LINE_SCHEMAS), 'end'].join(', ');
      throw new EngineError('invalid', `type: expected one of ${known}`);
    }
    const schema: z.ZodType = LINE_SCHEMAS[type as keyof typeof LINE_SCHEMAS];
    const line = parse(schema, value) as PortableLine;
    for (const name of Object.keys(value as object))
      if (!Object.hasOwn(LINE_SCHEMAS[line.type].shape, name)) this.#counts.unknown.add(`${type}.${name}`);
    return { line: this.#owned(line) };
  }

  #owned(line: PortableLine): PortableLine {
    const { users } = this.#asked;
    const ownerOf = (userId: string) => users.get(userId) ?? userId;
    switch (line.type) {
      case 'memory':
      case 'document':
      case 'session_item':
        return { ...line, user_id: ownerOf(line.user_id) };
      case 'standing_query':
        return { ...line, user_id: line.user_id === null ? null : ownerOf(line.user_id) };
      case 'eval_set': {
        const items = line.items.map((item) =>
          item.user_id === undefined ? item : { ...item, user_id: ownerOf(item.user_id) },
        );
        return { ...line, items };
      }
      default:
        return line;
    }
  }

  async #import(lines: readonly PortableLine[]): Promise<ImportOutcome[]> {
    if (lines.length === 0) return [];
    const imported = await this.#target.importLines(lines);
    const outcomes = imported.map((outcome, at) => this.#kept(lines[at]!, outcome));
    for (const [at, line] of lines.entries()) {
      if (isConfiguration(line)) outcomes[at] = await importConfiguration(this.#call.tenant, line, this.#asked.dryRun);
    }
    return outcomes;
  }

  /**
   * Judges a line anew that misses a memory which this import did not bring back, as a new reading of its document took
   * it away: then the line is kept away, too.
   */
  #kept(line: PortableLine, outcome: ImportOutcome): ImportOutcome {
    if (line.type === 'memory' && outcome.kind === 'kept' && this.#keptIds.size < MAX_KEPT) this.#keptIds.add(line.id);
    if (outcome.kind !== 'refused' || outcome.error.code !== 'not_found') return outcome;
    const ends = line.type === 'link' ? [line.src, line.dst] : line.type === 'revision' ? [line.memory] : [];
    return ends.some((id) => this.#keptIds.has(id)) ? { kind: 'kept' } : outcome;
  }
}

const END = Buffer.from('{"type":"end"');
/** Longest last line: counts and a hash. */
const MAX_END_BYTES = 4_096;

/** True for bytes that may be the last line of an export: it is not hashed, and read even if lines are passed over. */
function isEnd(bytes: Buffer): boolean {
  return bytes.length < MAX_END_BYTES && bytes.subarray(0, END.length).equals(END);
}

/** Counts by name, of at most `MAX_NAMES` names; names with the same first `NAME_CHARACTERS` are counted together. */
class Counter {
  readonly #counts = new Map<string, number>();
  total = 0;

  add(name: string): void {
    this.total += 1;
    const short = name.length > NAME_CHARACTERS ? beginningOf(name) : name;
    const shown = this.#counts.has(short) || this.#counts.size < MAX_NAMES ? short : 'others';
    this.#counts.set(shown, (this.#counts.get(shown) ?? 0) + 1);
  }

  toObject(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}

/** The first characters of a name, copied: a slice would keep the whole name in memory. */
function beginningOf(name: string): string {
  return Buffer.from(`${name.slice(0, NAME_CHARACTERS)}…`).toString();
}

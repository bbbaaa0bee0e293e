import { createHash, type Hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { z } from 'zod';
import {
  beginningOf,
  EngineError,
  type ImportOutcome,
  PORTABLE_VERSION,
  type PortableLine,
  takeTurn,
} from '../../engine/index.ts';
import { placeOfBody } from '../body-places.ts';
import { logFailure, toEngineError } from '../http-errors.ts';
import { IDLE_MS, streamedResults } from '../line-results.ts';
import { groupsOf, type Line, linesOf } from '../lines.ts';
import { parseJsonInTurns } from '../read-body.ts';
import { takeTokens } from '../take-tokens.ts';
import { localsOf } from '../reply.ts';
import type { TenantCall } from '../route.ts';
import { clientGone } from '../wait-for-writes.ts';
import { admissionCheck } from '../watch-admission.ts';
import { parse } from '../schemas/parse.ts';
import { endLine, headLine, LINE_SCHEMAS } from '../schemas/portable.ts';
import { type ItemError, isItemError, itemError, orItemError } from './batch-items.ts';
import { importConfiguration, isConfiguration } from './configuration-lines.ts';

/** Longest line of an import in bytes: enough for a memory with its value and its vectors. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
/**
 * Greatest numbers of JSON values and field names in a line. They are three times those of a request body, since a line
 * may contain what came in three bodies (metadata, value and text). One field, which is parsed without letting other
 * requests run, may contain half as much again as a body, since a replaced version has a value and metadata in one.
 */
const LINE_BOUNDS = {
  ...{ values: 300_000, names: 60_000 },
  fields: { most: 1_000, values: 150_000, names: 30_000 },
};
/**
 * Number of lines in a group of lines; the lines of a group, and perhaps those of the next one, are stored in one
 * transaction.
 */
const GROUP_LINES = 128;
/**
 * Greatest number of groups of lines that are read and not on disk yet: while one group is stored, two more are parsed,
 * which then share one transaction.
 */
const GROUPS_UNDER_WAY = 3;
/**
 * Greatest number of memory ids that an import remembers because their memories were not imported (outcome `kept`);
 * each takes about 100 bytes.
 */
const MAX_KEPT = 200_000;
/**
 * Greatest number of names (of line types or fields) that a `Counter` counts separately. `NAME_CHARACTERS` is the
 * number of UTF-16 code units by which it tells names apart.
 */
const MAX_NAMES = 100;
const NAME_CHARACTERS = 64;

export interface ImportRequest {
  readonly dryRun: boolean;
  /** Number of the first line that is imported, 1 for all; lines before it are skipped. */
  readonly fromLine: number;
  /** New user ids by the user ids in the file. Users that are not in the map keep theirs. */
  readonly users: ReadonlyMap<string, string>;
}

/**
 * Answers `POST /import` with NDJSON, while the lines of `body` arrive. Reading pauses while three groups of lines (in
 * a dry run one) are not on disk; groups are stored in the order of the file. If an error comes after the first answer,
 * such as of the storage, of a rate limit or of a revoked key, the import ends: the summary then has an `error`, and
 * all lines that were answered before are stored.
 * @throws EngineError if the import fails before the first answer is sent
 */
export async function importLines(call: TenantCall, body: Readable, asked: ImportRequest): Promise<void> {
  const { api, request, response } = call;
  // The key is checked before each group, so that the summary still says what is stored.
  const requireAdmitted = admissionCheck(call);
  const results = streamedResults(response, 200, api.engine.config.OM_READER_TIMEOUT_MS);
  const session = new ImportSession(call, asked);
  // A dry run remembers what the lines before would have stored, so it judges one group after the other.
  const mostUnderWay = asked.dryRun ? 1 : GROUPS_UNDER_WAY;
  const underWay: { readonly taking: Promise<readonly object[]>; readonly bytes: number }[] = [];
  const held = heldBytes(request);
  const answerFirst = async () => {
    const { taking, bytes } = underWay[0]!;
    for (const result of await taking) results.push(result);
    void underWay.shift();
    held.give(bytes);
    await results.flush();
  };
  try {
    const { hold } = held;
    for await (const group of groupsOf(
      linesOf(body, { maxBytes: MAX_LINE_BYTES, hold, idleMs: IDLE_MS }),
      GROUP_LINES,
    )) {
      requireAdmitted();
      takeTokens(call, 'batch_items', group.length);
      const bytes = held.take(group);
      const taking = session.take(await session.read(group));
      taking.catch(() => {}); // It is told when its turn comes.
      if (underWay.push({ taking, bytes }) === mostUnderWay) await answerFirst();
    }
    while (underWay.length > 0) await answerFirst();
  } catch (thrown) {
    // The groups after the failed one may be stored: they are counted, and not answered.
    await Promise.allSettled(underWay.map(({ taking }) => taking));
    if (response.destroyed || !response.headersSent) throw thrown;
    logFailure(api.engine.logger, toEngineError(thrown), localsOf(response).requestId);
    return await results.end({ ...session.summary(false), ...itemError(thrown) });
  } finally {
    session.end();
  }
  await results.end(session.summary(true));
}

/**
 * Counts the bytes of an import in memory, in the name of its key (`BodyPlaces`): those of the unfinished line, which
 * `hold` is told, and those of the groups of lines that are not on disk yet. `take` counts the lines of a group and
 * returns their bytes, which `give` takes off. Both `hold` and `take` throw EngineError `unavailable` if the bytes
 * exceed the share of the key, of its tenant or of all keys.
 */
function heldBytes(request: IncomingMessage) {
  const place = placeOfBody(request);
  let [ofGroups, unfinished] = [0, 0];
  const tell = () => place.hold(ofGroups + unfinished);
  return {
    hold(bytes: number): void {
      unfinished = bytes;
      tell();
    },
    take(group: readonly Line[]): number {
      const size = group.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0);
      // The line that was unfinished has ended, and is in this group.
      unfinished = 0;
      ofGroups += size;
      tell();
      return size;
    },
    give(bytes: number): void {
      ofGroups -= bytes;
      tell();
    },
  };
}

/**
 * A parsed line: what is to be imported; null for a line with nothing to import, such as the first and the last line of
 * a file.
 */
type Parsed = { readonly line: PortableLine } | { readonly line: null };

/** A line that was parsed or refused, with its number in the upload. */
interface ReadLine {
  readonly number: number;
  readonly read: Parsed | ItemError;
}

/** State of one import in progress. */
class ImportSession {
  readonly #call: TenantCall;
  readonly #asked: ImportRequest;
  readonly #gone: AbortSignal;
  readonly #target: Pick<TenantCall['tenant'], 'importLines'>;
  /** Forgets what a dry run remembers. Call it once nothing is imported any more. */
  readonly end: () => void;
  readonly #hash: Hash = createHash('sha256');
  readonly #counts = {
    stored: new Counter(),
    known: new Counter(),
    kept: new Counter(),
    refused: new Counter(),
    unknown: new Counter(),
  };
  /**
   * Ids of memories that were not imported (outcome `kept`), because this server has a later version of the memory, or
   * has already read its whole document.
   */
  readonly #keptIds = new Set<string>();
  /**
   * Outcomes for the settings, evaluation sets and standing queries of the latest group of lines. The promise resolves
   * after all earlier groups' settings, evaluation sets and standing queries are stored.
   */
  #configured: Promise<ReadonlyMap<PortableLine, ImportOutcome>> = Promise.resolve(new Map());
  #isComplete = false;
  #checksum: 'match' | 'differs' | 'absent' = 'absent';

  constructor(call: TenantCall, asked: ImportRequest) {
    this.#call = call;
    this.#asked = asked;
    this.#gone = clientGone(call.response);
    const rehearsal = asked.dryRun ? call.tenant.rehearseImport() : undefined;
    this.#target = rehearsal ?? call.tenant;
    this.end = () => rehearsal?.end();
  }

  /**
   * Parses a group of lines, and lets other requests run in between. Call it for one group at a time, in the order of
   * the groups.
   */
  async read(group: readonly Line[]): Promise<readonly ReadLine[]> {
    const found: ReadLine[] = [];
    for (const line of group) {
      const read = await this.#read(line);
      found.push({ number: line.number, read });
      await takeTurn();
    }
    return found;
  }

  /**
   * Imports a group of lines that `read` has parsed.
   * @returns the results of the refused lines, then one entry with the number of the group's last line and, in
   *   `progress`, the number of lines so far in the whole import that were stored, known or kept
   */
  async take(group: readonly ReadLine[]): Promise<readonly object[]> {
    const parsed = group.filter(({ number }) => number >= this.#asked.fromLine);
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

  async #read({ number, bytes }: Line): Promise<Parsed | ItemError> {
    if (bytes === null) return itemError(new EngineError('too_large', `the line is over ${MAX_LINE_BYTES} bytes`));
    const isLast = isEnd(bytes);
    if (!isLast) this.#hash.update(bytes).update('\n');
    if (number < this.#asked.fromLine && !isLast) return { line: null };
    try {
      const value = await parseJsonInTurns(bytes, LINE_BOUNDS);
      return orItemError(() => this.#parse(value));
    } catch (error) {
      return orItemError(() => {
        throw error;
      });
    }
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
    this.#configured = this.#configure(lines, this.#configured);
    const configured = await this.#configured;
    const others = lines.filter((line) => !configured.has(line));
    const imported = (others.length === 0 ? [] : await this.#target.importLines(others)).values();
    return lines.map((line) => configured.get(line) ?? this.#kept(line, imported.next().value!));
  }

  /**
   * Imports the settings, evaluation sets and standing queries among these lines, after those of earlier groups. They
   * are stored before the memories of this group and of later ones, since a standing query is only compared with
   * memories that become ready after it.
   */
  async #configure(
    lines: readonly PortableLine[],
    earlier: Promise<unknown>,
  ): Promise<ReadonlyMap<PortableLine, ImportOutcome>> {
    await earlier;
    const outcomes = new Map<PortableLine, ImportOutcome>();
    for (const line of lines)
      if (isConfiguration(line))
        outcomes.set(line, await importConfiguration(this.#call, line, { ...this.#asked, signal: this.#gone }));
    return outcomes;
  }

  /**
   * Returns the outcome of a line, and notes the id of a memory that was `kept`. The outcome is `kept` instead of
   * `refused` in one case: the line is a link or a revision whose memory is missing here, because this import left that
   * memory out in favour of the state of this server (outcome `kept`).
   */
  #kept(line: PortableLine, outcome: ImportOutcome): ImportOutcome {
    if (line.type === 'memory' && outcome.kind === 'kept' && this.#keptIds.size < MAX_KEPT) this.#keptIds.add(line.id);
    if (outcome.kind !== 'refused' || outcome.error.code !== 'not_found') return outcome;
    const ends = line.type === 'link' ? [line.src, line.dst] : line.type === 'revision' ? [line.memory] : [];
    return ends.some((id) => this.#keptIds.has(id)) ? { kind: 'kept' } : outcome;
  }
}

const END = Buffer.from('{"type":"end"');
/** Longest last line of an export (bytes); it holds counts and a hash. */
const MAX_END_BYTES = 4_096;

/**
 * Tells whether bytes may be the last line of an export. That line is not hashed, and it is read even if lines are
 * skipped.
 */
function isEnd(bytes: Buffer): boolean {
  return bytes.length < MAX_END_BYTES && bytes.subarray(0, END.length).equals(END);
}

/**
 * Counts how often each name was added. Names over 64 UTF-16 code units that begin with the same 64 count as one name.
 * After 100 names, all further names are counted together as `others`.
 */
class Counter {
  readonly #counts = new Map<string, number>();
  total = 0;

  add(name: string): void {
    this.total += 1;
    const short = name.length > NAME_CHARACTERS ? shortened(name) : name;
    const shown = this.#counts.has(short) || this.#counts.size < MAX_NAMES ? short : 'others';
    this.#counts.set(shown, (this.#counts.get(shown) ?? 0) + 1);
  }

  toObject(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}

/** Returns the first characters of a name, copied: a slice would keep the whole name in memory. */
function shortened(name: string): string {
  return Buffer.from(`${beginningOf(name, NAME_CHARACTERS)}…`).toString();
}

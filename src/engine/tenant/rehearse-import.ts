import { createHash } from 'node:crypto';
import { joinsOneUser } from '../commands/judge-import.ts';
import { EngineError } from '../errors.ts';
import { type JudgedImport, logItemId } from '../readers/judge-import.ts';
import { contentHash } from '../text/content-hash.ts';
import type { ImportOutcome, PortableLine } from '../types.ts';

/**
 * Greatest number of ids and other names that all dry runs of imports in this process remember, which takes some 280
 * MB.
 */
const MAX_NAMES = 2_000_000;

/** Time after which a dry run that found no room for its names may be tried again (ms). */
const RETRY_AFTER_MS = 60_000;

/** Number of names that the dry runs of this process remember now. */
let remembered = 0;

/**
 * What an import of a line would take for itself: the hash of its own name (such as its id), a text made of its content
 * by which a repetition of the line is recognised (`mark`), and the hashes of further names that no other line may use.
 */
interface Claims {
  readonly name: string;
  readonly mark: string;
  readonly others: readonly string[];
}

/**
 * A dry run of an import: predicts what the import would do, line by line, and stores nothing. It remembers the names
 * that earlier lines would take, so that later lines are judged as if the earlier ones had been stored. Quota and
 * backlog are not checked. `end` forgets the names.
 */
export class ImportRehearsal {
  readonly #judge: (lines: readonly PortableLine[]) => Promise<readonly JudgedImport[]>;
  /**
   * For each name that a line would take, by the hash of the name: the line's `mark` (text by which a repetition is
   * recognised), or '' for a further name of the line.
   */
  readonly #taken = new Map<string, string>();

  readonly #most: number;

  /**
   * @param judge says what an import of lines into the present store would do
   * @param most greatest number of names that all dry runs of this process remember
   */
  constructor(judge: (lines: readonly PortableLine[]) => Promise<readonly JudgedImport[]>, most: number = MAX_NAMES) {
    this.#judge = judge;
    this.#most = most;
  }

  /**
   * Predicts the outcome of each line, in order.
   * @throws EngineError `too_large` if this dry run alone would remember more than 2,000,000 names; `unavailable` if
   *   all dry runs of this process together would
   */
  async importLines(lines: readonly PortableLine[]): Promise<ImportOutcome[]> {
    const judged = await this.#judge(lines);
    return lines.map((line, place) => {
      const { outcome, missing } = judged[place]!;
      if (outcome.kind !== 'stored') return outcome;
      const lost = missing.find(({ id }) =>
        ['memory', 'document', 'session_item'].every((type) => !this.#taken.has(hashed(type, id))),
      );
      if (lost !== undefined) return refused('not_found', `${lost.name}: nothing with this id`);
      return this.#claim(line);
    });
  }

  #claim(line: PortableLine): ImportOutcome {
    const claims = claimsOf(line);
    if (claims === null) return { kind: 'read' };
    const mark = this.#taken.get(claims.name);
    if (mark === claims.mark) return { kind: 'known' };
    if (mark !== undefined && line.type === 'memory' && isLater(mark, claims.mark)) return { kind: 'kept' };
    if (mark !== undefined && line.type === 'session_item') return { kind: 'kept' };
    if (mark !== undefined) return refused('conflict', 'another line of this import has its id');
    if (claims.others.some((name) => this.#taken.has(name)) || !this.#fits(line))
      return refused('conflict', 'it does not go with another line of this import');
    const before = this.#taken.size;
    for (const name of [claims.name, ...claims.others]) this.#taken.set(name, name === claims.name ? claims.mark : '');
    remembered += this.#taken.size - before;
    if (this.#taken.size > this.#most)
      throw new EngineError('too_large', `a dry run looks at ${this.#most} ids and names at most`);
    if (remembered > this.#most)
      throw new EngineError('unavailable', 'other dry runs of imports take the memory there is for them', {
        retryAfterMs: RETRY_AFTER_MS,
      });
    return { kind: 'stored' };
  }

  /** Forgets all names. The dry run must not be used afterwards. */
  end(): void {
    remembered -= this.#taken.size;
    this.#taken.clear();
  }

  /**
   * Whether the import could store this link, earlier version or part of a document beside its other lines. A link must
   * join two memories, with a winner that is one of them or null; users are compared as `joinsOneUser` says, if both
   * memories are in this import. An earlier version must be older than its memory of this import, and the number of a
   * part below the number of chunks of its document. True for any other line, and for a version or a part of what is
   * not in this import.
   */
  #fits(line: PortableLine): boolean {
    if (line.type === 'memory' && line.document !== null) {
      const document = this.#taken.get(hashed('document', line.document.id));
      return document === undefined || line.document.index < Number(document.split(' ')[0]);
    }
    if (line.type === 'link') {
      const isWon = line.winner === null || line.winner === line.src || line.winner === line.dst;
      const [src, dst] = [line.src, line.dst].map((id) => this.#taken.get(hashed('memory', id)));
      const isOthers = src !== undefined && dst !== undefined && userOf(src) !== userOf(dst);
      return isWon && line.src !== line.dst && !(isOthers && joinsOneUser(line));
    }
    if (line.type !== 'revision') return true;
    const [version, updatedAt] = (this.#taken.get(hashed('memory', line.memory)) ?? '').split(' ').map(Number);
    return updatedAt === undefined || (line.version < version! && line.replaced_at <= updatedAt);
  }
}

/**
 * Whether the memory of `mark` is a later version than that of `other` and has the same user. Both are marks that
 * `claimsOf` makes of memories.
 */
function isLater(mark: string, other: string): boolean {
  return Number(mark.split(' ')[0]) > Number(other.split(' ')[0]) && userOf(mark) === userOf(other);
}

/** Returns the hash of the user in a mark that `claimsOf` makes of a memory. */
function userOf(mark: string): string {
  return mark.slice(-USER_AND_TEXT, -TEXT);
}

/** Length of the hash of the text, at the end of a mark that `claimsOf` makes of a memory, in characters. */
const TEXT = 8;
/** Length of the hashes of the user and of the text together, at the end of a mark of a memory, in characters. */
const USER_AND_TEXT = 20;

function refused(code: string, message: string): ImportOutcome {
  return { kind: 'refused', error: { code, message } };
}

/** Returns the hash by which a name is remembered: 96 bits, as 12 characters. */
function hashed(...parts: readonly (string | number)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest().toString('latin1', 0, 12);
}

/**
 * Returns what an import of a line would take for itself; null for a document's text, a setting, an evaluation set or a
 * standing query, which a dry run does not predict.
 */
function claimsOf(line: PortableLine): Claims | null {
  switch (line.type) {
    case 'memory': {
      const { id, user_id: user, external_id: external, item, document, version } = line;
      const text = contentHash(line.content).toString('latin1', 0, TEXT);
      return {
        name: hashed('memory', id),
        mark: `${version} ${line.updated_at ?? line.created_at ?? ''} ${hashed(user)}${text}`,
        others: [
          ...(external === null ? [] : [hashed('external', user, external)]),
          ...(item === null ? [] : [hashed('item', user, item.namespace, item.key)]),
          ...(document === null ? [] : [hashed('place', document.id, document.index)]),
        ],
      };
    }
    case 'revision':
      return { name: hashed('revision', line.memory, line.version), mark: '', others: [] };
    case 'link': {
      const { src, dst, link_type: type, automatic } = line;
      const ends = type === 'contradicts' ? [src, dst].sort() : [src, dst];
      const isOnly = type === 'waypoint' && automatic;
      return {
        name: hashed('link', type, ...ends),
        mark: '',
        others: isOnly ? [hashed('waypoint', src)] : type === 'supersedes' ? [hashed('superseded', dst)] : [],
      };
    }
    case 'document': {
      const { id, user_id: user, external_id: external, chunks, sha256 } = line;
      return {
        name: hashed('document', id),
        mark: `${chunks} ${hashed(user, sha256 ?? '')}`,
        others: external === null ? [] : [hashed('document of', user, external)],
      };
    }
    case 'session_item': {
      const mark = hashed(JSON.stringify(line.item));
      return { name: hashed('session_item', logItemId(line, line.position)), mark, others: [] };
    }
    case 'document_text':
    case 'setting':
    case 'eval_set':
    case 'standing_query':
      return null;
  }
}

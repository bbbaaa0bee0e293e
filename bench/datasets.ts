/**
 * Loaders for three public retrieval sets in a folder that the command line names. The sets are not part of this
 * project, since their licences forbid passing them on:
 *
 * - LoCoMo (snap-research/LoCoMo), long chats between two people: `locomo-*.json.gz`
 * - Cranfield, 1,400 abstracts on aerodynamics: `cran.all.1400.gz`, `cran.qry`, `cranqrel`
 * - MemDaily (nuster1128/MemSim), Chinese notes of everyday life: `memdaily*.jsonl.gz`
 */
import fs from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { NewMemory } from '../src/engine/types.ts';

/** A memory of a set; fields that are left out get the defaults of an add. */
export interface EvaluationMemory extends Partial<Omit<NewMemory, 'userId'>> {
  /** Name of the memory, unique for its user. */
  readonly key: string;
  readonly sessionId: string;
  readonly content: string;
  /** Key of an earlier memory of the same user that this one replaces. */
  readonly supersedes?: string;
}

/** One user's memories, in the order they were said. */
export interface EvaluationUser {
  readonly userId: string;
  readonly memories: readonly EvaluationMemory[];
}

export interface EvaluationQuestion {
  readonly userId: string;
  readonly query: string;
  /** Keys of memories of the same user; empty for a question that has no answer. */
  readonly relevant: ReadonlySet<string>;
  readonly category?: string;
}

export interface EvaluationSet {
  readonly name: string;
  readonly users: readonly EvaluationUser[];
  readonly questions: readonly EvaluationQuestion[];
}

interface LocomoTurn {
  readonly speaker: string;
  readonly dia_id: string;
  readonly text: string;
  readonly blip_caption?: string;
}

interface LocomoSample {
  readonly sample_id: string;
  readonly conversation: Readonly<Record<string, unknown>>;
  readonly qa: readonly {
    readonly question: string;
    readonly evidence: readonly string[];
    readonly category: number;
  }[];
}

/**
 * Loads LoCoMo: each sample becomes a user, each turn a memory, with the session's time and a minute between turns.
 * Questions of category 5 have no answer and keep an empty `relevant`; others without a known evidence turn are
 * dropped.
 */
export function loadLocomo(directory: string): EvaluationSet {
  const samples = JSON.parse(readText(directory, /^locomo.*\.json(\.gz)?$/)) as LocomoSample[];
  return {
    name: 'locomo',
    users: samples.map((sample) => ({ userId: sample.sample_id, memories: locomoMemories(sample) })),
    questions: samples.flatMap(locomoQuestions),
  };
}

function locomoMemories(sample: LocomoSample): EvaluationMemory[] {
  const memories: EvaluationMemory[] = [];
  for (let session = 1; ; session += 1) {
    const turns = sample.conversation[`session_${session}`] as LocomoTurn[] | undefined;
    if (turns === undefined) {
      // A sample may have the time of a session without its turns; it ends at a session without either.
      if (sample.conversation[`session_${session}_date_time`] === undefined) return memories;
      continue;
    }
    const start = locomoTime(sample.conversation[`session_${session}_date_time`] as string);
    for (const [position, turn] of turns.entries()) {
      const caption = turn.blip_caption === undefined ? '' : ` ${turn.blip_caption}`;
      memories.push({
        key: turn.dia_id,
        sessionId: `session_${session}`,
        content: `${turn.speaker}: ${turn.text}${caption}`,
        eventTime: start + position * 60_000,
      });
    }
  }
}

function locomoQuestions(sample: LocomoSample): EvaluationQuestion[] {
  const known = new Set(locomoMemories(sample).map((memory) => memory.key));
  return sample.qa.flatMap((question) => {
    const evidence = question.evidence.flatMap((text) => text.match(/D\d+:\d+/g) ?? []);
    const relevant = question.category === 5 ? new Set<string>() : new Set(evidence.filter((key) => known.has(key)));
    if (question.category !== 5 && relevant.size === 0) return [];
    return [{ userId: sample.sample_id, query: question.question, relevant, category: String(question.category) }];
  });
}

/** Parses '1:56 pm on 8 May, 2023' as UTC, to Unix ms. */
function locomoTime(text: string): number {
  const match = /^(\d+):(\d+) (am|pm) on (\d+) (\w+), (\d+)$/.exec(text);
  if (match === null) throw new Error(`not a LoCoMo time: ${text}`);
  const [, hour, minute, half, day, month, year] = match;
  const midnight = Date.parse(`${day} ${month} ${year} 00:00 UTC`);
  return midnight + (((Number(hour) % 12) + (half === 'pm' ? 12 : 0)) * 60 + Number(minute)) * 60_000;
}

/**
 * Loads Cranfield: one user has all abstracts, each with title and text. Queries are numbered by their order in the
 * file, as in the judgements. The codes 1 to 4 count as relevant.
 */
export function loadCranfield(directory: string): EvaluationSet {
  const relevant = new Map<number, Set<string>>();
  for (const line of readText(directory, /^cranqrel$/).split('\n')) {
    const [query, document, code] = line.trim().split(/\s+/).map(Number);
    if (query === undefined || document === undefined || code === undefined || code < 1 || code > 4) continue;
    if (!relevant.has(query)) relevant.set(query, new Set());
    relevant.get(query)!.add(String(document));
  }
  const memories = smartRecords(readText(directory, /^cran\.all\.1400(\.gz)?$/)).map((record) => ({
    key: String(Number(record.id)),
    sessionId: '',
    content: `${record.T ?? ''}\n${record.W ?? ''}`.trim(),
  }));
  const questions = smartRecords(readText(directory, /^cran\.qry$/)).flatMap((record, index) => {
    const keys = relevant.get(index + 1);
    return keys === undefined ? [] : [{ userId: 'cranfield', query: record.W ?? '', relevant: keys }];
  });
  return {
    name: 'cranfield',
    users: [{ userId: 'cranfield', memories: memories.filter((memory) => memory.content !== '') }],
    questions,
  };
}

/** Parses SMART's format: `.I id` begins a record; a line with a dot and a capital letter begins a field. */
function smartRecords(text: string): { id: string; T?: string; W?: string }[] {
  return text
    .split(/^\.I /m)
    .slice(1)
    .map((record) => {
      const [head, ...fields] = record.split(/^\.([TABW])[ \t]*$/m);
      const values: { id: string; T?: string; W?: string } = { id: head!.trim() };
      for (let at = 0; at + 1 < fields.length; at += 2) {
        const value = fields[at + 1]!.replace(/\s+/g, ' ').trim();
        if (fields[at] === 'T') values.T = value;
        if (fields[at] === 'W') values.W = value;
      }
      return values;
    });
}

interface MemdailyLine {
  readonly file: string;
  readonly message_list: readonly {
    readonly mid: number;
    readonly message: string;
    readonly time: string;
    readonly place: string;
  }[];
  readonly question_list: readonly { readonly question: string; readonly target_step_id: readonly number[] }[];
}

/** Number of consecutive lines that become one user: one line has about nine messages, which is too easy. */
const LINES_PER_USER = 20;

/** Loads MemDaily: twenty lines become one user, each line a session, each message a memory. */
export function loadMemdaily(directory: string): EvaluationSet {
  const lines = readText(directory, /^memdaily.*\.jsonl(\.gz)?$/)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line) as MemdailyLine);
  const users: EvaluationUser[] = [];
  const questions: EvaluationQuestion[] = [];
  for (let first = 0; first < lines.length; first += LINES_PER_USER) {
    const userId = `user-${first / LINES_PER_USER}`;
    const memories: EvaluationMemory[] = [];
    for (const [offset, line] of lines.slice(first, first + LINES_PER_USER).entries()) {
      const keyOf = (mid: number) => `${first + offset}:${mid}`;
      for (const message of line.message_list) {
        const eventTime = memdailyTime(message.time);
        memories.push({
          key: keyOf(message.mid),
          sessionId: `line-${first + offset}`,
          content: message.message,
          eventTime,
        });
      }
      for (const question of line.question_list) {
        const relevant = new Set(question.target_step_id.map(keyOf));
        questions.push({ userId, query: question.question, relevant, category: line.file });
      }
    }
    users.push({ userId, memories });
  }
  return { name: 'memdaily', users, questions };
}

/** Parses '2024年04月01日 周一 08:30' as UTC, to Unix ms. */
function memdailyTime(text: string): number {
  const match = /^(\d+)年(\d+)月(\d+)日.* (\d+):(\d+)$/.exec(text);
  if (match === null) throw new Error(`not a MemDaily time: ${text}`);
  const [year, month, day, hour, minute] = match.slice(1).map(Number) as [number, number, number, number, number];
  return Date.UTC(year, month - 1, day, hour, minute);
}

/**
 * Loads the sets below `directory`, each in a folder whose name begins with the name of the set (`locomo-dev`,
 * `cranfield`).
 * @throws Error if there is none
 */
export function loadEvaluationSets(directory: string): EvaluationSet[] {
  const loaders = { locomo: loadLocomo, cranfield: loadCranfield, memdaily: loadMemdaily };
  const folders = fs.readdirSync(directory).sort();
  const sets = Object.entries(loaders).flatMap(([name, load]) =>
    folders.filter((folder) => folder.startsWith(name)).map((folder) => load(path.join(directory, folder))),
  );
  if (sets.length === 0)
    throw new Error(`no evaluation set below ${directory}: expected folders locomo*, cranfield* or memdaily*`);
  return sets;
}

function readText(directory: string, pattern: RegExp): string {
  const name = fs.readdirSync(directory).find((file) => pattern.test(file));
  if (name === undefined) throw new Error(`no file like ${pattern.source} in ${directory}`);
  const bytes = fs.readFileSync(path.join(directory, name));
  return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}

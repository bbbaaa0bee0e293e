import fs from 'node:fs';
import v8 from 'node:v8';
import type { ImportResult } from '../../api/schemas/portable.ts';
import { CliError } from '../cli-error.ts';
import { connect, ConnectionError, type Client, type ConnectionOptions } from '../client.ts';
import type { ImportContext, ImportFormat, ImportSource } from '../importers/format.ts';
import { formatNamed, formatOf } from '../importers/formats.ts';
import { openBytes, openSource, withoutByteOrderMark } from '../open-source.ts';
import { startProgress } from '../progress.ts';
import { count, counted, oneLine, print, red, span, table } from '../terminal.ts';
import { passphraseOf } from './export.ts';
import { importLines } from './import.ts';

export interface ImportCommandOptions extends ConnectionOptions {
  readonly dryRun?: boolean;
  readonly fromLine?: number;
  readonly mapUser?: readonly string[];
  readonly user?: string;
  readonly passphraseFile?: string;
}

type Summary = Extract<ImportResult, { readonly done: boolean }>;

const REASONS_SHOWN = 5;
/**
 * Length from which a piece of lines is sent, in UTF-16 code units. The server stores lines that arrive together in one
 * transaction.
 */
const PIECE_CHARACTERS = 64 * 1024;
const FIELDS_SHOWN = 100;
const HEAD = /^\s*\{\s*"type"\s*:\s*"cairn\.export"/;

/**
 * Runs `cairn import [FORMAT] FILE`. Without a format, it is recognised: an export of Cairn, an archive or file of
 * another program, or one memory on each line, as `POST /memory/add` takes it.
 * If something was refused or is damaged, the exit code is 1.
 * @throws CliError if the format is not recognised, or the source or the import breaks off; with exit code 2 for more
 *   than two arguments, and for an option that the kind of source does not know
 */
export async function importData(targets: readonly string[], options: ImportCommandOptions): Promise<void> {
  const [named, target = named!] = targets.length === 2 ? targets : [undefined, targets[0]!];
  if (targets.length > 2) throw new CliError('expected a file, or a format and a file', { exitCode: 2 });
  if (named === 'openmemory') {
    refuseOptions(options, 'files of OpenMemory');
    return (await import('./import-openmemory.ts')).importOpenMemory(target, options);
  }
  if (named === 'lines' || target === '-') return importPlainLines(target, options);
  const passphrase = passphraseOf(options);
  if (named === 'cairn' || (named === undefined && (await isExport(target, passphrase))))
    return importExport(target, passphrase, options);
  const source = await openSource(target);
  try {
    const format = named === undefined ? (isPlainLines(source) ? undefined : formatOf(source)) : formatNamed(named);
    if (format !== undefined) return await importForeign(format, { source, target }, options);
  } finally {
    source.close();
  }
  if (source.kind !== 'file' || source.head === '')
    throw new CliError(`${target} has no known format: name it, as in \`cairn import claude ${target}\``);
  return importPlainLines(target, options);
}

function importPlainLines(target: string, options: ImportCommandOptions): Promise<void> {
  refuseOptions(options, 'one memory a line');
  return importLines(target, options);
}

/**
 * Throws CliError with exit code 2, before anything is stored, if `dryRun`, `fromLine`, `mapUser` or `user` is given,
 * which sources of this kind do not know.
 * @param kind name of the kind of source, for the message
 */
function refuseOptions({ dryRun, fromLine, mapUser, user }: ImportCommandOptions, kind: string): void {
  const given = [
    ...(dryRun === true ? ['--dry-run'] : []),
    ...(fromLine === undefined ? [] : ['--from-line']),
    ...(mapUser === undefined || mapUser.length === 0 ? [] : ['--map-user']),
    ...(user === undefined ? [] : ['--user']),
  ];
  if (given.length > 0) throw new CliError(`${given.join(', ')}: not for ${kind}; nothing was stored`, { exitCode: 2 });
}

/** Throws CliError for a user id that the server would refuse in every line. */
function requireUser(user: string | undefined): void {
  if (user === undefined || (user.length <= 256 && !/\p{Cc}/u.test(user) && user.isWellFormed())) return;
  const expected = 'expected at most 256 characters without control characters';
  throw new CliError(`--user: ${expected}; nothing was stored`, { exitCode: 2 });
}

/** Tells whether the source is a file whose first line is a memory as `POST /memory/add` takes it. */
function isPlainLines({ kind, head }: ImportSource): boolean {
  if (kind !== 'file') return false;
  try {
    const first = JSON.parse(head.split('\n', 1)[0]!) as object | null;
    return typeof first === 'object' && first !== null && 'content' in first;
  } catch {
    return false;
  }
}

async function isExport(target: string, passphrase: string | undefined): Promise<boolean> {
  if (fs.statSync(target).isDirectory()) return false;
  for await (const piece of withoutByteOrderMark(openBytes(target, passphrase)))
    return HEAD.test(Buffer.from(piece.subarray(0, 256)).toString());
  return false;
}

async function importExport(
  target: string,
  passphrase: string | undefined,
  options: ImportCommandOptions,
): Promise<void> {
  if (options.user !== undefined)
    throw new CliError('--user: an export names its users; use --map-user old=new', { exitCode: 2 });
  const body = untilFailure(withoutByteOrderMark(openBytes(target, passphrase)));
  const { summary } = await send(connect(options), body.pieces, options);
  if (body.failure() !== undefined)
    throw new CliError(`${body.failure()!.message}. What is above is ${options.dryRun ? 'counted' : 'stored'}`);
  if (summary.complete && summary.checksum !== 'differs') return;
  process.exitCode = 1;
  print(
    red(
      summary.complete
        ? 'the lines are not those that were exported: the file was changed'
        : 'the file was cut: its last line is missing. What is above is stored',
    ),
  );
}

async function importForeign(
  format: ImportFormat,
  { source, target }: { readonly source: ImportSource; readonly target: string },
  options: ImportCommandOptions,
): Promise<void> {
  requireUser(options.user);
  const skipped = new Map<string, number>();
  const passedOver = new Map<string, number>();
  const damages: string[] = [];
  let read = 0;
  let damaged = 0;
  const context: ImportContext = {
    source,
    userId: options.user,
    read: () => void (read += 1),
    skip(reason) {
      const shown = skipped.has(reason) || skipped.size < FIELDS_SHOWN ? reason : 'other reasons';
      skipped.set(shown, (skipped.get(shown) ?? 0) + 1);
    },
    passOver(field) {
      const shown = passedOver.has(field) || passedOver.size < FIELDS_SHOWN ? field : 'other fields';
      passedOver.set(shown, (passedOver.get(shown) ?? 0) + 1);
    },
    damaged(message) {
      damaged += 1;
      if (damages.length < REASONS_SHOWN) damages.push(message);
    },
  };
  for (const reason of source.leftOut) {
    context.read();
    context.skip(reason);
  }
  const lines = untilFailure(format.lines(context));
  const texts = (async function* () {
    let piece = '';
    for await (const line of lines.pieces) {
      piece += `${JSON.stringify(line)}\n`;
      if (piece.length < PIECE_CHARACTERS) continue;
      yield piece;
      piece = '';
    }
    yield piece;
  })();
  await send(connect(options), texts, options);
  const rows = [...skipped].map(([reason, number]) => [count(number), reason]);
  const told = damaged === 0 ? '' : `, ${count(damaged)} damaged`;
  print(`${format.name}: ${count(read)} read, ${count(sumOf(skipped.values()))} skipped${told}`);
  print(...table(rows, '><').map((row) => `  ${row}`));
  printPassedOver([...passedOver]);
  if (damaged > 0) printReasons(damages, damaged);
  if (lines.failure() !== undefined) throw lines.failure()!;
  if (read === 0 && damaged === 0) throw new CliError(`nothing of the format ${format.name} was found in ${target}`);
}

/**
 * Wraps an iterable so that a CliError (such as that of a cut file) ends it instead of being thrown. So everything
 * before the failure is still imported. `failure` returns the error; undefined if there was none.
 */
function untilFailure<Piece>(source: AsyncIterable<Piece>) {
  let failure: CliError | undefined;
  async function* pieces(): AsyncGenerator<Piece> {
    try {
      yield* source;
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      failure = error;
    }
  }
  return { pieces: pieces(), failure: () => failure };
}

/**
 * Sends lines to `POST /import`, shows the progress, and prints how many were stored, known, kept (as they were changed
 * here) or refused.
 * @returns the server's summary
 * @throws CliError if the connection or the server fails before the end
 */
async function send(
  client: Client,
  body: AsyncIterable<Uint8Array | string>,
  { dryRun = false, fromLine = 1, mapUser = [] }: ImportCommandOptions,
): Promise<{ readonly summary: Summary }> {
  // Files and replies become garbage as fast as they are read. V8 would let its young generation grow by 40 MB for it.
  v8.setFlagsFromString('--semi-space-growth-factor=1');
  const query = new URLSearchParams({ dry_run: String(dryRun), from_line: String(fromLine) });
  for (const pair of mapUser) query.append('map_user', pair);
  const progress = startProgress(dryRun ? 'Reading' : 'Importing', 0);
  const startedAt = performance.now();
  const reasons: string[] = [];
  let reached = 0;
  let summary: Summary | undefined;
  try {
    for await (const reply of client.exchangeLines(`/import?${query.toString()}`, body)) {
      const result = reply as ImportResult;
      if ('done' in result) summary = result;
      else {
        reached = result.line;
        if ('error' in result && reasons.length < REASONS_SHOWN)
          reasons.push(`line ${result.line}: ${result.error.message}`);
        progress.update(reached, counted(reached, 'line'));
      }
    }
  } catch (error) {
    if (!(error instanceof ConnectionError) || reached === 0) throw error;
    throw brokenOff('the connection broke off', reached);
  } finally {
    progress.stop();
  }
  if (summary === undefined) throw brokenOff('the connection broke off', reached);
  printSummary(summary, reasons, performance.now() - startedAt);
  if (summary.error !== undefined) throw brokenOff(`the server stopped (${summary.error.message})`, reached);
  return { summary };
}

function printSummary(summary: Summary, reasons: readonly string[], ms: number): void {
  const { stored, known, kept, refused, unknown_fields: unknown, dry_run: dryRun } = summary;
  const isKept = sumOf(Object.values(kept)) > 0;
  const columns = [stored, known, ...(isKept ? [kept] : []), refused];
  const types = [...new Set(columns.flatMap((counts) => Object.keys(counts)))];
  const rows = types.map((type) => [type, ...columns.map((counts) => count(counts[type] ?? 0))]);
  const names = ['known already', ...(isKept ? ['kept: changed here'] : []), 'refused'];
  print(...table([['', dryRun ? 'would be stored' : 'stored', ...names], ...rows], `<${'>'.repeat(columns.length)}`));
  print(`${dryRun ? 'nothing was stored; ' : ''}${span(ms)}`);
  printPassedOver(Object.entries(unknown));
  const total = sumOf(Object.values(refused));
  if (total > 0) printReasons(reasons, total);
}

function printPassedOver(fields: readonly (readonly [name: string, number: number])[]): void {
  const shown = fields.map(([name, number]) => `${oneLine(name)} (${count(number)})`);
  if (shown.length > 0) print(`fields that are not known and were passed over: ${shown.join(', ')}`);
}

/** Prints the first reasons why something was not imported, and makes the exit code of the command 1. */
function printReasons(reasons: readonly string[], total: number): void {
  process.exitCode = 1;
  for (const reason of reasons) print(red(oneLine(reason)));
  if (total > reasons.length) print(`and ${count(total - reasons.length)} more`);
}

function sumOf(numbers: Iterable<number>): number {
  return [...numbers].reduce((sum, number) => sum + number, 0);
}

function brokenOff(reason: string, line: number): CliError {
  return new CliError(
    `${reason} after line ${count(line)}: run the same command again, what is stored already is recognised; ` +
      `--from-line ${line} passes over the lines before`,
  );
}

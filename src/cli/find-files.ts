import fs from 'node:fs';
import path from 'node:path';
import { formatOfExtension } from '../engine/index.ts';
import { CliError } from './cli-error.ts';

export interface FoundFile {
  /** As it was named, or below a folder as that was named; with forward slashes on every system. */
  readonly path: string;
  readonly bytes: number;
}

export interface FoundFiles {
  readonly files: readonly FoundFile[];
  /** How many entries of folders were left out, by reason. */
  readonly skipped: ReadonlyMap<string, number>;
}

/**
 * The files that paths, folders and patterns name, each once. A file that is named itself is taken whatever it is; of folders, and of
 * what matches a pattern, only what a server can read.
 * @throws CliError, or the system's error, for what is not there
 */
export function findFiles(targets: readonly string[]): FoundFiles {
  const files = new Map<string, FoundFile>();
  const skipped = new Map<string, number>();
  const skip = (reason: string) => void skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
  const take = (file: string, { size }: fs.Stats) => {
    const name = path.normalize(file).split(path.sep).join('/');
    files.set(name, { path: name, bytes: size });
  };

  const visit = (file: string): void => {
    const reason = reasonToSkip(path.basename(file));
    if (reason !== undefined) return skip(reason);
    const stats = fs.lstatSync(file, { throwIfNoEntry: false });
    // Names that are no UTF-8 are read with U+FFFD in them, and no file is found under that.
    if (stats === undefined) return file.includes('\ufffd') ? skip('name that is not UTF-8') : undefined;
    if (stats.isDirectory()) return visitFolder(file);
    if (stats.isSymbolicLink()) return skip('symbolic link');
    if (!stats.isFile()) return skip('no regular file');
    if (formatOfExtension(extensionOf(file)) === undefined) return skip('unknown type');
    take(file, stats);
  };
  const visitFolder = (folder: string): void => {
    let names: string[];
    try {
      names = fs.readdirSync(folder).sort();
    } catch (error) {
      if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return skip('folder without permission');
    }
    for (const name of names) visit(path.join(folder, name));
  };

  for (const target of targets) {
    if (isPattern(target)) {
      for (const match of matchesOf(target)) visit(match);
      continue;
    }
    const stats = fs.statSync(target);
    if (stats.isDirectory()) visitFolder(target);
    else take(target, stats);
  }
  return { files: [...files.values()], skipped };
}

function reasonToSkip(name: string): string | undefined {
  if (name === 'node_modules') return 'node_modules';
  return /^\.[^.]/.test(name) ? 'hidden' : undefined;
}

/** As `path.extname` gives it for a name with a dot; files such as `Dockerfile` are known by their whole name. */
function extensionOf(file: string): string {
  return (path.extname(file).slice(1) || path.basename(file)).toLowerCase();
}

function isPattern(target: string): boolean {
  return /[*?]/.test(target) && !fs.existsSync(target);
}

function matchesOf(pattern: string): string[] {
  // Left out here as well, since a pattern such as **/*.md looks into it.
  const matches = fs.globSync(pattern, { exclude: (entry) => path.basename(entry) === 'node_modules' });
  if (matches.length === 0) throw new CliError(`nothing matches ${pattern}`);
  return matches.sort();
}

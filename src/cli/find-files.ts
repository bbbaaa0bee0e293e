import fs from 'node:fs';
import path from 'node:path';
import { formatOfExtension } from '../engine/index.ts';
import { CliError } from './cli-error.ts';

export interface FoundFile {
  /**
   * Path as the user gave it, or below the folder that the user gave: without `./` and the like, and with forward
   * slashes on every system.
   */
  readonly path: string;
  readonly bytes: number;
  /**
   * Text that identifies the file's state. It differs from an earlier one if the file was written, replaced or given
   * other permissions.
   */
  readonly stamp: string;
}

export interface FoundFiles {
  readonly files: readonly FoundFile[];
  /** Folders that were searched, those that the user gave included. */
  readonly folders: readonly string[];
  /**
   * Number of files and folders that were found and skipped, by reason. A skipped folder counts once, whatever is in
   * it.
   */
  readonly skipped: ReadonlyMap<string, number>;
}

/**
 * Finds the files that paths, folders and patterns (`*`, `?`) name, each once. A file that is named directly is always
 * included. In folders, and among the matches of a pattern, a file or folder is skipped if it is hidden, a symbolic
 * link, `node_modules`, a folder that may not be read, no regular file, of a type that a server cannot read, or if its
 * name is not UTF-8. A folder that is named directly and may not be read is skipped, too.
 * @throws CliError for a pattern without a match; the system's error for a path that does not exist
 */
export function findFiles(targets: readonly string[]): FoundFiles {
  const files = new Map<string, FoundFile>();
  const folders: string[] = [];
  const skipped = new Map<string, number>();
  const skip = (reason: string) => void skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
  const take = (file: string, { size, ino, ctimeMs }: fs.Stats) => {
    const name = path.normalize(file).split(path.sep).join('/');
    files.set(name, { path: name, bytes: size, stamp: `${ino} ${ctimeMs} ${size}` });
  };

  const visit = (file: string): void => {
    const reason = reasonToSkip(path.basename(file));
    if (reason !== undefined) return skip(reason);
    const stats = fs.lstatSync(file, { throwIfNoEntry: false });
    // Node reads a name that is not UTF-8 with U+FFFD in it, and no file has that name.
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
    folders.push(folder);
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
  return { files: [...files.values()], folders, skipped };
}

function reasonToSkip(name: string): string | undefined {
  if (name === 'node_modules') return 'node_modules';
  return /^\.[^.]/.test(name) ? 'hidden' : undefined;
}

/** Returns the extension of a file in lower case; for a name without one, such as `Dockerfile`, the whole name. */
function extensionOf(file: string): string {
  return (path.extname(file).slice(1) || path.basename(file)).toLowerCase();
}

function isPattern(target: string): boolean {
  return /[*?]/.test(target) && !fs.existsSync(target);
}

function matchesOf(pattern: string): string[] {
  // Excluded here as well, since a pattern such as **/*.md would search these folders.
  const matches = fs.globSync(pattern, { exclude: (entry) => path.basename(entry) === 'node_modules' });
  if (matches.length === 0) throw new CliError(`nothing matches ${pattern}`);
  return matches.sort();
}

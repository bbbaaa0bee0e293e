import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { tempFolder } from './temp-folder.ts';

const DISK_BYTES = 256 * 1024 * 1024;

/** A small disk of its own, or undefined where this user may not mount one. */
export function mountSmallDisk(): string | undefined {
  const folder = tempFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  return folder;
}

export function unmount(folder: string): void {
  execFileSync('umount', [folder]);
}

/** Takes all space but so much. */
export function fillDisk(file: string, keepBytes: number): void {
  const { bavail, bsize } = fs.statfsSync(path.dirname(file));
  fs.writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize - keepBytes)));
}

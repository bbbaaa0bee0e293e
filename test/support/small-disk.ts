import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { tempFolder } from './temp-folder.ts';

const DISK_BYTES = 256 * 1024 * 1024;

/** Mounts a small disk and returns its path; undefined if this user may not mount one. */
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

/** Fills the disk with a file, so that only `keepBytes` bytes are free. */
export function fillDisk(file: string, keepBytes: number): void {
  for (let tries = 1; ; tries += 1) {
    const { bavail, bsize } = fs.statfsSync(path.dirname(file));
    try {
      return fs.writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize - keepBytes)));
    } catch (error) {
      // Whoever else uses the disk may have written in between.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC' || tries === 5) throw error;
      fs.rmSync(file, { force: true });
    }
  }
}

import fs from 'node:fs';
import path from 'node:path';
import {
  databaseForm,
  importWrappedKey,
  keyFileOf,
  keyOfFile,
  readKeyFile,
  restoreDatabase,
  type FileKey,
} from '../../engine/for-admin.ts';
import { DEFAULT_TENANT } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { requireFiles, withExclusiveDataFolder } from '../data-folder.ts';
import { startProgress } from '../progress.ts';
import { bytes, counted, print } from '../terminal.ts';

/**
 * Runs `cairn restore FILE`: replaces the file of a tenant by a backup, and keeps the old one under a new name. No
 * other Cairn process may use the data folder meanwhile.
 * @throws CliError without `yes`, without the master key of the backup, or if tenants are kept in PostgreSQL
 * @throws EngineError `unprocessable` for a wrong key; what `restoreDatabase` throws
 */
export async function restore(
  file: string,
  { tenant, yes, keyFile }: { readonly tenant?: string; readonly yes?: boolean; readonly keyFile?: string },
): Promise<void> {
  if (!yes)
    throw new CliError('this replaces all memories of the tenant by the backup: confirm with --yes', {
      exitCode: 2,
    });
  await withExclusiveDataFolder(async ({ config, control, pathOf }) => {
    requireFiles(config);
    const to = pathOf(tenant);
    const progress = startProgress('Restoring', 1);
    const { memories, kept, lost } = await restoreDatabase({
      from: path.resolve(file),
      to,
      fromKey: keyOfBackup(path.resolve(file), to, keyFile === undefined ? config.masterKey : masterKeyOf(keyFile)),
      now: Date.now(),
      onProgress: (done, total) => progress.update(done / total, `${bytes(done)} of ${bytes(total)}`),
    }).finally(() => progress.stop());
    control.audit.append('backup.restore', { tenant: tenant ?? DEFAULT_TENANT, memories });
    print(`${counted(memories, 'memory', 'memories')} restored to ${to}`);
    if (lost > 0) {
      print(
        `${counted(lost, 'document')} had not been read when the backup was made, and the files are not here: ` +
          'send them again (they end as failed, upload_missing)',
      );
    }
    if (kept !== null) print(`what was there before is kept as ${path.basename(kept)}`);
  });
}

function masterKeyOf(keyFile: string): Uint8Array {
  const key = readKeyFile(keyFile, '--key-file');
  if (typeof key === 'string') throw new CliError(key, { exitCode: 2 });
  return key;
}

/**
 * Returns the key of a backup: the one in the file beside it, or else that of the tenant; null for an unencrypted
 * backup.
 * @throws CliError if the key beside it needs a master key and there is none
 */
function keyOfBackup(file: string, to: string, masterKey: Uint8Array | null): FileKey | null {
  if (databaseForm(file) !== 'sealed') return null;
  const beside = keyFileOf(file);
  if (!fs.existsSync(beside)) return keyOfFile(to);
  if (masterKey === null)
    throw new CliError(`${file} is encrypted: set OM_ENCRYPTION_KEY_FILE, or give its master key by --key-file`);
  return importWrappedKey(masterKey, fs.readFileSync(beside, 'utf8'));
}

import {
  changeDataKeys,
  changeMasterKey,
  decryptFolder,
  encryptFolder,
  encryptionStatus,
  fingerprintOf,
  readKeyFile,
} from '../../engine/for-admin.ts';
import { readConfig } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { withLockedFiles } from '../data-folder.ts';
import { counted, print, table } from '../terminal.ts';

/**
 * Runs `cairn encrypt`: encrypts all stored data with the key of the settings. No other Cairn process may use the data
 * folder meanwhile.
 */
export async function encrypt(): Promise<void> {
  await withLockedFiles(async (config) => {
    await encryptFolder(config, (name) => print(`encrypting ${name}`));
    print('all databases and waiting documents are encrypted. Keep the master key: without it nothing can be read');
    print('what the disk held in clear before may still be found on it until it is overwritten');
    const left = encryptionStatus(config).files.filter(({ form }) => form === 'clear');
    if (left.length > 0) {
      print(`still in clear, as Cairn does not use them: ${left.map(({ name }) => name).join(', ')}. Remove them`);
    }
  });
}

/** Runs `cairn decrypt`: stores all data unencrypted. No other Cairn process may use the data folder meanwhile. */
export async function decrypt(): Promise<void> {
  await withLockedFiles(async (config) => {
    await decryptFolder(config, (name) => print(`decrypting ${name}`));
    print('all data is stored in clear: unset the encryption key before the server is started');
  });
}

/**
 * Runs `cairn rekey`: changes the master key to that of `newKeyFile`, or with `dataKeys` the keys of the tenants, or
 * both, the keys of the tenants first. No other Cairn process may use the data folder meanwhile.
 * @throws CliError if neither is given, or the file has no key; the keys of the tenants may be changed by then
 * @throws EngineError `conflict` if another process uses the data folder
 */
export async function rekey({ newKeyFile, dataKeys }: { newKeyFile?: string; dataKeys?: boolean }): Promise<void> {
  if (newKeyFile === undefined && dataKeys !== true)
    throw new CliError(
      'expected --new-key-file FILE for a new master key, or --data-keys for new keys of the tenants',
      {
        exitCode: 2,
      },
    );
  await withLockedFiles(async (config) => {
    if (dataKeys) {
      await changeDataKeys(config, (name) => print(`encrypting ${name}`));
      print('each tenant has a new data key');
    }
    if (newKeyFile === undefined) return;
    const key = readKeyFile(newKeyFile, '--new-key-file');
    if (typeof key === 'string') throw new CliError(key, { exitCode: 2 });
    const isChanged = await changeMasterKey(config, key);
    print(`the master key ${isChanged ? 'is now' : 'was already'} ${fingerprintOf(key)}: set it in the settings`);
  });
}

/** Runs `cairn status`: prints which files are encrypted. It may run beside a server. */
export async function status(): Promise<void> {
  const config = readConfig(process.env);
  const { files, uploads, keyId, opens } = encryptionStatus(config);
  const facts = { true: 'opens the data', false: 'is not the key of the data', null: 'is set' };
  print(keyId === null ? 'no encryption key is set' : `master key ${keyId} ${facts[`${opens}`]}`);
  if (keyId !== null) print(`cipher of new files: ${config.OM_ENCRYPTION_CIPHER}`);
  print(
    ...table(
      files.map(({ name, form }) => [name, form === 'sealed' ? 'encrypted' : 'in clear']),
      '<<',
    ),
  );
  print(`${counted(uploads.sealed + uploads.clear, 'document')} waiting to be read, ${uploads.clear} of them in clear`);
}

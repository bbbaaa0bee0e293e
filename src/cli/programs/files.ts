import type { Command } from 'commander';
import { onTenant, parseDay } from '../options.ts';

/**
 * Adds the commands that work on the data folder itself: on the files of tenants, their encryption, and their move into
 * a database or back.
 */
export function addFileCommands(program: Command): void {
  onTenant(program, 'backup')
    .description('copy the memories into one file; the server may run')
    .argument('<file>', 'path of the backup; it must not exist')
    .action(async (file: string, options: object) => (await import('../commands/backup.ts')).backup(file, options));
  onTenant(program, 'restore')
    .description('replace all memories by a backup; the server must be stopped')
    .argument('<file>', 'a file that `cairn backup` made')
    .option(
      '--key-file <file>',
      'the master key that an encrypted backup was made under, if it is not that of the settings',
    )
    .option('--yes', 'confirm that you mean it')
    .action(async (file: string, options: object) => (await import('../commands/restore.ts')).restore(file, options));
  program
    .command('move')
    .description('move all tenants into a PostgreSQL database, or back into files; every service must be stopped')
    .requiredOption('--to <place>', 'postgres://…, or with OM_DATABASE_URL the path that OM_DB_PATH shall have')
    .option('--tenant <id>', 'only this tenant, with its keys, settings and limits')
    .option('--keep-source', 'leave the source open, such as for a trial')
    .action(async (options: { to: string }) => (await import('../commands/move.ts')).move(options));
  program
    .command('encrypt')
    .description('encrypt all stored data with the key of the settings; the server must be stopped')
    .action(async () => (await import('../commands/encryption.ts')).encrypt());
  program
    .command('decrypt')
    .description('store all data in clear again; the server must be stopped')
    .action(async () => (await import('../commands/encryption.ts')).decrypt());
  program
    .command('rekey')
    .description('change the master key, or the keys that it wraps; the server must be stopped')
    .option('--new-key-file <file>', 'a file with the new master key, 64 hex digits')
    .option('--data-keys', 'give each tenant a new key and encrypt its files again')
    .action(async (options: object) => (await import('../commands/encryption.ts')).rekey(options));
  program
    .command('status')
    .description('show which files are encrypted, and which key is set')
    .action(async () => (await import('../commands/encryption.ts')).status());
  onTenant(program, 'rebuild-index')
    .description('make the indexes again from the memories; the server must be stopped')
    .action(async (options: object) => (await import('../commands/rebuild-index.ts')).rebuildIndex(options));
  onTenant(program, 'scan')
    .description('look for secrets and personal data in what is stored; prints kinds and ids, never values')
    .option('--user <id>', 'only the memories of this user')
    .option('--redact', 'show what would be redacted; with --yes redact it, with the server stopped')
    .option('--yes', 'confirm that you mean it')
    .action(async (options: object) => (await import('../commands/scan.ts')).scan(options));
  onTenant(program, 'decay')
    .description('show how memories decay; changes nothing')
    .requiredOption('--preview <date>', 'a future day, such as 2030-01-31, or a number of days, such as 30d', parseDay)
    .action(async (options: { preview: number }) => (await import('../commands/decay.ts')).decay(options));
}

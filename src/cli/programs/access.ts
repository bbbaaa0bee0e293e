import { type Command, Option } from 'commander';
import { ROLES } from '../../engine/for-options.ts';
import type { KeyOptions } from '../commands/keys.ts';
import { collect, integer, onTenant, overHttp } from '../options.ts';

/**
 * Adds the commands about tenants, their keys, limits, privacy policy, audit log and receipts of deletes, and about
 * embedding models on this machine.
 */
export function addAccessCommands(program: Command): void {
  program.commandsGroup('Operation (on the files that OM_DB_PATH names)');
  addTenants(program);
  addKeys(program);
  addLimits(program);
  addPrivacy(program);
  addAudit(program);
  addErasures(program);
  addModels(program);
}

function addTenants(program: Command): void {
  const tenants = program.command('tenants').description('create, list, move and erase tenants');
  tenants
    .command('create <id>')
    .description('create a tenant with its own file, or in PostgreSQL')
    .option('--database <name>', 'a database of OM_DATABASES (default: home, that of OM_DATABASE_URL)')
    .action(async (id: string, options: object) => (await import('../commands/tenants.ts')).createTenant(id, options));
  tenants
    .command('list', { isDefault: true })
    .description('list all tenants')
    .action(async () => (await import('../commands/tenants.ts')).listTenants());
  tenants
    .command('move <id>')
    .description('move a tenant to another PostgreSQL database; services may run, only writes of the tenant wait')
    .requiredOption('--to <name>', 'a database of OM_DATABASES, or home for that of OM_DATABASE_URL')
    .action(async (id: string, options: { to: string }) =>
      (await import('../commands/tenants.ts')).moveTenant(id, options),
    );
  tenants
    .command('erase <id>')
    .description('erase a tenant, its keys and its files; the server must be stopped')
    .option('--yes', 'confirm that you mean it')
    .action(async (id: string, options: object) => (await import('../commands/tenants.ts')).eraseTenant(id, options));
}

function addKeys(program: Command): void {
  const keys = program.command('keys').description('create, list and revoke keys');
  keys
    .command('create')
    .description('create a key; it is shown only once')
    .option('--tenant <id...>', 'tenants that the key gives access to; a request that names none is for the first')
    .addOption(new Option('--role <role>', 'role of the key').choices(ROLES).default('write'))
    .option('--name <text>', 'name of the key, such as what it is for')
    .addOption(new Option('--label <text>', 'the same as --name').hideHelp())
    .option('--user <id>', 'the only user whose memories the key reaches')
    .option('--tag <tag...>', 'tags that all memories of the key carry')
    .option('--expires <when>', 'end of the key: a time such as 2027-01-31, or a duration such as 12h or 90d')
    .action(async (options: KeyOptions) => (await import('../commands/keys.ts')).createKey(options));
  keys
    .command('list', { isDefault: true })
    .description('list all keys, without their secrets')
    .option('--tenant <id>', 'only keys of this tenant')
    .action(async (options: object) => (await import('../commands/keys.ts')).listKeys(options));
  keys
    .command('revoke <id>')
    .description('revoke a key; running servers refuse it too')
    .action(async (id: string) => (await import('../commands/keys.ts')).revokeKey(id));
}

function addLimits(program: Command): void {
  const limits = program.command('limits').description('show and set rate limits and quotas of tenants and keys');
  const whose = (command: Command) =>
    command
      .option('--tenant <id>', 'the tenant (default: the default tenant)')
      .option('--key <id>', 'one key of the tenant, by its id; environment for OM_API_KEY');
  whose(limits.command('show', { isDefault: true }))
    .description('show the limits that apply')
    .action(async (options: object) => (await import('../commands/limits.ts')).showLimits(options));
  whose(limits.command('set <limit=value...>'))
    .description('set limits, such as queries=600 (a minute) or max_mb=2048; 0 for no limit')
    .action(async (values: string[], options: object) =>
      (await import('../commands/limits.ts')).setLimits(values, options),
    );
  whose(limits.command('unset <limit...>'))
    .description('remove limits: those of the tenant or of the settings apply again')
    .action(async (names: string[], options: object) =>
      (await import('../commands/limits.ts')).unsetLimits(names, options),
    );
}

function addPrivacy(program: Command): void {
  const privacy = program.command('privacy').description('what becomes of secrets and personal data in new texts');
  onTenant(privacy, 'show', { isDefault: true })
    .description('show the policy of a tenant')
    .action(async (options: object) => (await import('../commands/privacy.ts')).showPrivacy(options));
  onTenant(privacy, 'set')
    .description('set the policy of a tenant, from the next write on')
    .argument('<group=mode...>', 'such as secrets=redact personal=mark; modes: off, mark, redact, refuse')
    .action(async (assignments: string[], options: object) =>
      (await import('../commands/privacy.ts')).setPrivacy(assignments, options),
    );
}

function addAudit(program: Command): void {
  const OF_SERVICE = 'the log of keys, tenants, limits and backups, not that of one tenant';
  const audit = program.command('audit').description('who did what: list, verify, export, undo');
  overHttp(audit, 'list', { isDefault: true })
    .description('list the audit log, newest first; needs an admin key')
    .option('--service', OF_SERVICE)
    .option('--limit <count>', 'most records to list', integer(1, 1000), 50)
    .option('--by <key>', 'only what the key with this id did')
    .option('--action <name>', 'only this action, such as memory.delete')
    .action(async (options: { limit: number }) => (await import('../commands/audit.ts')).listAudit(options));
  onTenant(audit, 'verify')
    .description('check that no record of the audit log was changed or taken out; the server may run')
    .option('--service', OF_SERVICE)
    .action(async (options: object) => (await import('../commands/audit.ts')).verifyAudit(options));
  onTenant(audit, 'export')
    .description('print the audit log as lines of JSON, oldest first; the server may run')
    .option('--service', OF_SERVICE)
    .action(async (options: object) => (await import('../commands/audit.ts')).exportAudit(options));
  overHttp(audit, 'undo')
    .description('erase all that a key wrote, and restore what it changed')
    .argument('<key>', 'id of the key, not its secret')
    .option('--yes', 'confirm that you mean it')
    .action(async (key: string, options: object) => (await import('../commands/audit.ts')).undoKey(key, options));
}

function addErasures(program: Command): void {
  overHttp(program, 'erasures')
    .description('list the receipts of deletes, newest first; needs an admin key')
    .option('--limit <count>', 'most receipts to list', integer(1, 1000), 50)
    .option('--json', 'print the reply of the server')
    .action(async (options: { limit: number }) => (await import('../commands/erasures.ts')).listErasures(options));
  onTenant(program, 'verify-erasure')
    .description('look for what was erased in the files, in Redis and in paths that you name; the server may run')
    .argument('[receipt...]', 'receipts as the deletes told them (id.salt)')
    .option('--words <file>', 'words and phrases that you know, one a line')
    .option('--path <path>', 'a file or folder that is searched, too, such as of backups; may be repeated', collect)
    .option('--json', 'print what was found as JSON')
    .action(async (receipts: string[], options: object) =>
      (await import('../commands/verify-erasure.ts')).verifyErasure(receipts, options),
    );
}

function addModels(program: Command): void {
  const models = program.command('models').description('embedding models that run on this machine: list, add');
  models
    .command('list', { isDefault: true })
    .description('list models with their sizes, dimensions, languages and licences')
    .action(async () => (await import('../commands/models.ts')).listModels());
  models
    .command('add')
    .description('install a downloaded ONNX model beside the data, try it, and print the settings for it')
    .argument('<name>', 'its name, by which Cairn knows its family')
    .argument('<file...>', 'its folder, or its files one by one')
    .option('--sha256 <digest>', 'the SHA-256 that its .onnx file must have')
    .option('--dimensions <count>', 'length of its vectors, if its files do not say it', integer(1, 8192))
    .action(async (...args) =>
      (await import('../commands/models.ts')).installModel(...(args as unknown as [string, string[], object])),
    );
}

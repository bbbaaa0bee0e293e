/** The command line. The code of each command is loaded when it is called, so that help is shown at once. */
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import {
  CUTS,
  DAY_MS,
  FORMATS,
  JOB_STATES,
  PROFILES,
  QUEUE_NAMES,
  type QueueName,
  ROLES,
  VERSION,
} from '../engine/index.ts';
import { declareDataCommands } from './data-commands.ts';
import type { KeyOptions } from './commands/keys.ts';
import { reportError } from './report-error.ts';

const program = new Command('cairn')
  .description('A self-hosted memory for AI agents. Settings come from the environment and .env (see .env.example).')
  .version(VERSION)
  .exitOverride()
  .configureHelp({ showGlobalOptions: false })
  .showHelpAfterError('(cairn --help shows the commands)');

// ── Run ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

program.commandsGroup('Run');
program
  .command('serve')
  .description('serve the API and do the background work, in one process')
  .action(async () => (await import('../main.ts')).serve(process.env));
program
  .command('api')
  .description('serve the API only')
  .action(async () => (await import('../api/main.ts')).serveApi(process.env));
program
  .command('worker')
  .description('do the background work beside an API process; with REDIS_URL any number of them')
  .addOption(
    new Option('--queues <names>', 'with REDIS_URL: only these queues, separated by commas').argParser(parseQueues),
  )
  .addOption(
    new Option('--concurrency <n>', 'with REDIS_URL: number of encode jobs at the same time').argParser(
      parseConcurrency,
    ),
  )
  .action(async (options: object) => (await import('../workers/main.ts')).runWorkerProcess(process.env, options));
program
  .command('demo')
  .description('store documents in a temporary store, ask three questions, and explain each answer')
  .addArgument(new Argument('[folder]', "a folder of Markdown files; Cairn's own documents by default"))
  .option('--ask <question>', 'ask this question instead; may be repeated', collect)
  .action(async (...args) => (await import('./commands/demo.ts')).demo(...(args as [string?, object?])));
program.command('warm-up', { hidden: true }).action(async () => (await import('./warm-up.ts')).warmUp());

// ── Memories, over HTTP ──────────────────────────────────────────────────────────────────────────────────────────────

program.commandsGroup('Memories (of a running server)');
overHttp('add')
  .description('store a memory')
  .argument('<text...>', 'the text to store, or - to read it from standard input')
  .option('--user <id>', 'the user who owns the memory')
  .option('--session <id>', 'the conversation or task that the memory belongs to')
  .option('--tag <tag>', 'a tag; may be repeated', collect)
  .option('--title <title>', 'a line above the text')
  .option('--metadata <json>', 'a JSON object', parseObject)
  .option('--wait', 'wait until the memory is classified, embedded and linked')
  .action(async (words: string[], options: object) => (await import('./commands/add.ts')).add(words, options));
asking('query')
  .description('find memories')
  .argument('<text...>', 'what to look for')
  .option('--explain', 'show why each memory was found')
  .addOption(
    new Option('--format <format>', 'format of the answer; prompt and text are for language models').choices(FORMATS),
  )
  .option('--json', 'same as --format json: the reply of the server')
  .action(async (words: string[], options: object) => (await import('./commands/query.ts')).query(words, options));
asking('explain')
  .description('explain why a query does or does not return a memory, and what would return it')
  .argument('<query>', 'the text of the query')
  .argument('<id>', 'the memory')
  .option('--json', 'print the reply of the server')
  .action(async (text: string, id: string, options: object) =>
    (await import('./commands/explain.ts')).explain(text, id, options),
  );
overHttp('timeline')
  .description('show the memories before and after a memory in time')
  .argument('<id>', 'id of the memory, as query --json and add show it')
  .option('--before <count>', 'number of earlier memories', integer(0, 100), 5)
  .option('--after <count>', 'number of later memories', integer(0, 100), 5)
  .option('--session', 'only memories of its session')
  .option('--json', 'print the reply of the server')
  .action(async (id: string, options: { before: number; after: number }) =>
    (await import('./commands/timeline.ts')).timeline(id, options),
  );
declareDataCommands((name) => overHttp(name));
overHttp('ingest')
  .description('store documents; after an interruption or a change run it again, known documents are recognised')
  .argument(
    '<path or url...>',
    'files, folders (all files that can be read), patterns such as "docs/**/*.pdf", http(s) URLs',
  )
  .option('--user <id>', 'the user who owns the documents')
  .option('--session <id>', 'the conversation or task that the documents belong to')
  .option('--tag <tag>', 'a tag; may be repeated', collect)
  .option('--metadata <json>', 'a JSON object', parseObject)
  .option('--no-wait', 'do not wait until they are read, embedded and linked')
  .addHelpText(
    'after',
    '\nA file is recognised by its absolute path: a changed file replaces its old version.\n' +
      'Files with the same bytes are one document.\n' +
      'Hidden files, symbolic links and node_modules in folders are skipped.',
  )
  .action(async (targets: string[], options: { wait: boolean }) =>
    (await import('./commands/ingest.ts')).ingest(targets, options),
  );
overHttp('reflect')
  .description('let the language model write down conclusions from the latest memories')
  .option('--user <id>', 'the user whose memories are read; by default memories of no particular user')
  .option('--session <id>', 'only memories of this conversation or task')
  .option('--no-wait', 'do not wait for the result')
  .action(async (options: { wait: boolean }) => (await import('./commands/reflect.ts')).reflect(options));
overHttp('stats')
  .description('show memories, sectors, jobs and sizes')
  .action(async (options: object) => (await import('./commands/stats.ts')).stats(options));

overHttp('reembed')
  .description('embed all memories with the model in the settings; the old model answers until all are done')
  .option('--status', 'only show the progress and an estimate')
  .option('--pause', 'pause; reembed resumes')
  .option('--cancel', 'cancel; the old model stays live')
  .option('--without-refused', 'change to the new model even if it refuses many memories')
  .action(async (options: object) => (await import('./commands/reembed.ts')).reembed(options));

const embeddings = program
  .command('embeddings')
  .description('show calls of embedding providers and the language model');
overHttp('stats', embeddings, { isDefault: true })
  .description('show calls, tokens, cost and savings of the cache, by day and model')
  .option('--days <count>', 'number of days', integer(1, 3660), 30)
  .action(async (options: { days: number }) => (await import('./commands/embeddings.ts')).embeddingStats(options));
overHttp('failures', embeddings)
  .description('list failed calls and their reasons, newest first')
  .option('--limit <count>', 'most entries to list', integer(1, 1000), 20)
  .action(async (options: { limit: number }) => (await import('./commands/embeddings.ts')).embeddingFailures(options));

const jobs = program.command('jobs').description('background work: list, retry, cancel, discard');
overHttp('list', jobs, { isDefault: true })
  .description('list jobs and why they failed, newest first')
  .addOption(new Option('--state <state>', 'only jobs in this state; dead jobs have given up').choices(JOB_STATES))
  .option('--limit <count>', 'most entries to list', integer(1, 1000), 20)
  .action(async (options: { limit: number }) => (await import('./commands/jobs.ts')).listJobs(options));
overHttp('retry', jobs)
  .description('start a dead, failed or cancelled job again, or all jobs of a state')
  .argument('[id]')
  .addOption(new Option('--state <state>', 'all jobs in this state, instead of one').choices(['dead', 'cancelled']))
  .action(async (id: string | undefined, options: object) =>
    (await import('./commands/jobs.ts')).retryJobs(id, options),
  );
overHttp('cancel', jobs)
  .description('cancel an unfinished job')
  .argument('<id>')
  .action(async (id: string, options: object) => (await import('./commands/jobs.ts')).cancelJob(id, options));
overHttp('discard', jobs)
  .description('remove a dead or cancelled job from the list')
  .argument('<id>')
  .action(async (id: string, options: object) => (await import('./commands/jobs.ts')).discardJob(id, options));

// ── Operation, on the files ──────────────────────────────────────────────────────────────────────────────────────────

program.commandsGroup('Operation (on the files that OM_DB_PATH names)');
const tenants = program.command('tenants').description('create, list and erase tenants');
tenants
  .command('create <id>')
  .description('create a tenant with its own file')
  .action(async (id: string) => (await import('./commands/tenants.ts')).createTenant(id));
tenants
  .command('list', { isDefault: true })
  .description('list all tenants')
  .action(async () => (await import('./commands/tenants.ts')).listTenants());
tenants
  .command('erase <id>')
  .description('erase a tenant, its keys and its files; the server must be stopped')
  .option('--yes', 'confirm that you mean it')
  .action(async (id: string, options: object) => (await import('./commands/tenants.ts')).eraseTenant(id, options));

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
  .action(async (options: KeyOptions) => (await import('./commands/keys.ts')).createKey(options));
keys
  .command('list', { isDefault: true })
  .description('list all keys, without their secrets')
  .option('--tenant <id>', 'only keys of this tenant')
  .action(async (options: object) => (await import('./commands/keys.ts')).listKeys(options));
keys
  .command('revoke <id>')
  .description('revoke a key; running servers refuse it too')
  .action(async (id: string) => (await import('./commands/keys.ts')).revokeKey(id));

const limits = program.command('limits').description('show and set rate limits and quotas of tenants and keys');
const whose = (command: Command) =>
  command
    .option('--tenant <id>', 'the tenant (default: the default tenant)')
    .option('--key <id>', 'one key of the tenant, by its id; environment for OM_API_KEY');
whose(limits.command('show', { isDefault: true }))
  .description('show the limits that apply')
  .action(async (options: object) => (await import('./commands/limits.ts')).showLimits(options));
whose(limits.command('set <limit=value...>'))
  .description('set limits, such as queries=600 (a minute) or max_mb=2048; 0 for no limit')
  .action(async (values: string[], options: object) =>
    (await import('./commands/limits.ts')).setLimits(values, options),
  );
whose(limits.command('unset <limit...>'))
  .description('remove limits: those of the tenant or of the settings apply again')
  .action(async (names: string[], options: object) =>
    (await import('./commands/limits.ts')).unsetLimits(names, options),
  );
const OF_SERVICE = 'the log of keys, tenants, limits and backups, not that of one tenant';
const audit = program.command('audit').description('who did what: list, verify, export, undo');
overHttp('list', audit, { isDefault: true })
  .description('list the audit log, newest first; needs an admin key')
  .option('--service', OF_SERVICE)
  .option('--limit <count>', 'most records to list', integer(1, 1000), 50)
  .option('--by <key>', 'only what the key with this id did')
  .option('--action <name>', 'only this action, such as memory.delete')
  .action(async (options: { limit: number }) => (await import('./commands/audit.ts')).listAudit(options));
onTenant('verify', audit)
  .description('check that no record of the audit log was changed or taken out; the server may run')
  .option('--service', OF_SERVICE)
  .action(async (options: object) => (await import('./commands/audit.ts')).verifyAudit(options));
onTenant('export', audit)
  .description('print the audit log as lines of JSON, oldest first; the server may run')
  .option('--service', OF_SERVICE)
  .action(async (options: object) => (await import('./commands/audit.ts')).exportAudit(options));
overHttp('undo', audit)
  .description('erase all that a key wrote, and restore what it changed')
  .argument('<key>', 'id of the key, not its secret')
  .option('--yes', 'confirm that you mean it')
  .action(async (key: string, options: object) => (await import('./commands/audit.ts')).undoKey(key, options));

const models = program.command('models').description('embedding models that run on this machine: list, add');
models
  .command('list', { isDefault: true })
  .description('list models with their sizes, dimensions, languages and licences')
  .action(async () => (await import('./commands/models.ts')).listModels());
models
  .command('add')
  .description('install a downloaded ONNX model beside the data, try it, and print the settings for it')
  .argument('<name>', 'its name, by which Cairn knows its family')
  .argument('<file...>', 'its folder, or its files one by one')
  .option('--sha256 <digest>', 'the SHA-256 that its .onnx file must have')
  .option('--dimensions <count>', 'length of its vectors, if its files do not say it', integer(1, 8192))
  .action(async (...args) =>
    (await import('./commands/models.ts')).installModel(...(args as unknown as [string, string[], object])),
  );

onTenant('backup')
  .description('copy the memories into one file; the server may run')
  .argument('<file>', 'path of the backup; it must not exist')
  .action(async (file: string, options: object) => (await import('./commands/backup.ts')).backup(file, options));
onTenant('restore')
  .description('replace all memories by a backup; the server must be stopped')
  .argument('<file>', 'a file that `cairn backup` made')
  .option(
    '--key-file <file>',
    'the master key that an encrypted backup was made under, if it is not that of the settings',
  )
  .option('--yes', 'confirm that you mean it')
  .action(async (file: string, options: object) => (await import('./commands/restore.ts')).restore(file, options));
program
  .command('encrypt')
  .description('encrypt all stored data with the key of the settings; the server must be stopped')
  .action(async () => (await import('./commands/encryption.ts')).encrypt());
program
  .command('decrypt')
  .description('store all data in clear again; the server must be stopped')
  .action(async () => (await import('./commands/encryption.ts')).decrypt());
program
  .command('rekey')
  .description('change the master key, or the keys that it wraps; the server must be stopped')
  .option('--new-key-file <file>', 'a file with the new master key, 64 hex digits')
  .option('--data-keys', 'give each tenant a new key and encrypt its files again')
  .action(async (options: object) => (await import('./commands/encryption.ts')).rekey(options));
program
  .command('status')
  .description('show which files are encrypted, and which key is set')
  .action(async () => (await import('./commands/encryption.ts')).status());
onTenant('rebuild-index')
  .description('make the indexes again from the memories; the server must be stopped')
  .action(async (options: object) => (await import('./commands/rebuild-index.ts')).rebuildIndex(options));
onTenant('scan')
  .description('look for secrets and personal data in what is stored; prints kinds and ids, never values')
  .option('--user <id>', 'only the memories of this user')
  .option('--redact', 'show what would be redacted; with --yes redact it, with the server stopped')
  .option('--yes', 'confirm that you mean it')
  .action(async (options: object) => (await import('./commands/scan.ts')).scan(options));
onTenant('decay')
  .description('show how memories decay; changes nothing')
  .requiredOption('--preview <date>', 'a future day, such as 2030-01-31, or a number of days, such as 30d', parseDay)
  .action(async (options: { preview: number }) => (await import('./commands/decay.ts')).decay(options));

function overHttp(name: string, parent = program, options: { isDefault?: boolean } = {}): Command {
  return parent
    .command(name, options)
    .option('--url <url>', 'the server (default: CAIRN_URL, or http://127.0.0.1 at OM_PORT)')
    .option('--key <key>', 'its key (default: CAIRN_API_KEY or OM_API_KEY)');
}

/** A command with the options of a query. */
function asking(name: string): Command {
  return overHttp(name)
    .option('--user <id>', 'only the memories of this user')
    .option('-k, --k <count>', 'most memories to return', integer(1, 200))
    .addOption(new Option('--profile <name>', 'formula that scores memories').choices(PROFILES))
    .option('--min-score <score>', 'leave out memories with a lower score', fraction)
    .addOption(new Option('--cut <way>', 'cut the answer to what belongs together').choices(CUTS))
    .option('--as-of <time>', 'answer for an earlier time, such as 2026-01-31', parseTime)
    .option('--deep', 'include superseded, contradicted and archived memories');
}

function onTenant(name: string, parent = program): Command {
  return parent.command(name).option('--tenant <id>', 'the tenant (default: the default tenant)');
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a number in ${min}..${max}`);
  };
}

function fraction(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError('expected a number in 0..1');
}

/** Parses a time; the server checks it. Unix milliseconds become a number. */
function parseTime(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Malformed JSON is refused below.
  }
  throw new InvalidArgumentError('expected a JSON object such as {"source":"chat"}');
}

function parseQueues(text: string): QueueName[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.every((name) => (QUEUE_NAMES as readonly string[]).includes(name))) return names as QueueName[];
  throw new InvalidArgumentError(`expected some of ${QUEUE_NAMES.join(', ')}, separated by commas`);
}

function parseConcurrency(text: string): number {
  if (/^[1-9]\d?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected 1..99');
}

function parseDay(text: string): number {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const at =
    days !== undefined ? Date.now() + Number(days) * DAY_MS : /^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN;
  if (at > Date.now()) return at;
  throw new InvalidArgumentError('expected a day to come, such as 2030-01-31 or 30d');
}

// ── Start ────────────────────────────────────────────────────────────────────────────────────────────────────────────

// The reader of the output may close it early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

try {
  await program.parseAsync();
} catch (error) {
  // Commander has already printed the error or the help.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exit(reportError(error));
}

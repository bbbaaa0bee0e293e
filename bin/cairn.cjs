#!/usr/bin/env node
/*
 * The only entry point: starts the command line (src/cli) on a version of Node that can run it. Node 12 must still be
 * able to parse this file, because on a Node that is too old better-sqlite3 ends the process with a segmentation fault
 * instead of an error.
 */
'use strict';

var childProcess = require('child_process');
var fs = require('fs');
var os = require('os');
var path = require('path');
var tty = require('tty');

var ROOT = path.join(__dirname, '..');
/** Environment variable with the launcher's process id, in the Node that it started. */
var LAUNCHER = 'CAIRN_LAUNCHER_PID';
/** Environment variable with the process id of a Node that was restarted with flags. */
var RESTARTED = 'CAIRN_RESTARTED_PID';
/** Environment variable with the path of the .env that was loaded, which may hold keys (src/process.ts). */
var ENV_FILE = 'CAIRN_ENV_FILE';
/**
 * Flags of V8, which must be set before it starts. They hold for every thread, but the first one is for the main
 * thread alone (see SEMI_SPACE_OF_THREADS). Small values save memory and cost CPU time: while 32 connections added
 * memories, an API whose threads all had 2 MB and a tenth took 1,036 µs an add, 844 with 8 MB and a quarter, and 741
 * with 16 MB and a quarter, with 181, 208 and 227 MB resident (one run in turns, on a machine that others kept busy).
 * - max-semi-space-size bounds the young generation of a thread to twice this (MB). V8 lets it grow to 130 MB while
 *   much of it is in use, as when a thousand documents arrive, and keeps that size. The requests that the main thread
 *   serves at once survive each collection of a small young generation, and are copied to the old one, where only a
 *   full collection finds them.
 * - no-allocation-site-pretenuring stops V8 from allocating objects in the old generation when a single collection
 *   suggests that objects of their kind live long. The objects of a query die with it; with this guess 20 KB a query
 *   stayed until the next full collection, without it 4 KB.
 * - heap-growing-percent lets the old generation grow by a quarter before the next full collection. V8's default is
 *   fourfold; with a half, a thousand documents left 15 MB more.
 */
var V8_FLAGS = ['--max-semi-space-size=8', '--no-allocation-site-pretenuring', '--heap-growing-percent=25'];
/**
 * Flag for the threads that the main thread starts. With 8 MB two threads that answer queries took 60 MB more than with
 * 2, and answered as many.
 */
var SEMI_SPACE_OF_THREADS = '--max-semi-space-size=2';
/**
 * Number of glibc's arenas, each of which keeps freed memory. Its default is eight per core: 20 to 30 MB for the dozen
 * threads of a service. With two it is half of that.
 */
var MALLOC_ARENAS = { MALLOC_ARENA_MAX: '2' };
var SERVICES = ['serve', 'api', 'worker'];
var MISSING_NODE = 'Cairn needs Node 22.22 or newer: run `npm ci` here, or install Node 24';

main();

function main() {
  // With this variable, which `node --watch` (`npm run dev`) sets, each thread posts its imports among its own
  // messages.
  delete process.env.WATCH_REPORT_DEPENDENCIES;
  if (isNewEnough(process.versions.node)) {
    if (process.env[LAUNCHER]) endWithLauncher();
    else restartWithFlags();
    run();
  } else if (process.env[LAUNCHER]) {
    fail(MISSING_NODE); // The Node that npm installed is too old as well.
  } else {
    relaunch();
  }
}

/** Whether this Node strips types without a flag and can run all dependencies. */
function isNewEnough(version) {
  var parts = version.split('.').map(Number);
  if (parts[0] === 22) return parts[1] >= 22;
  if (parts[0] === 23) return parts[1] >= 6;
  return parts[0] > 23;
}

/**
 * Restarts this process with V8_FLAGS, except those that the caller has set. It takes 25 ms. Windows cannot replace a
 * process, so there it runs without the flags.
 */
function restartWithFlags() {
  // A restarted process keeps its id and so recognises itself; a process that it starts has another id.
  if (process.env[RESTARTED] === String(process.pid)) return void delete process.env[RESTARTED];
  if (!process.execve || SERVICES.indexOf(process.argv[2]) === -1) return;
  var given = process.execArgv
    .concat(process.env.NODE_OPTIONS || '')
    .join(' ')
    .replace(/_/g, '-');
  var flags = V8_FLAGS.filter(function (flag) {
    return given.indexOf(flag.replace(/^--(no-)?|=.*$/g, '')) === -1;
  });
  var environment = Object.assign({}, MALLOC_ARENAS, process.env);
  environment[RESTARTED] = String(process.pid);
  var command = [process.execPath].concat(process.execArgv, flags, __filename, process.argv.slice(2));
  process.execve(process.execPath, command, environment);
}

function run() {
  // V8 reads this flag when a thread starts, so the main thread keeps its own. A caller's own flag stays as it is.
  if (process.execArgv.indexOf(V8_FLAGS[0]) !== -1) require('v8').setFlagsFromString(SEMI_SPACE_OF_THREADS);
  // The cache must not be in the shared temporary folder, where another user could leave compiled code for us to run.
  var cache = path.join(ROOT, 'node_modules', '.cache', 'compile');
  require('module').enableCompileCache(cache);
  // Threads read this variable. Without it each thread strips the types again and keeps 20 MB for that.
  process.env.NODE_COMPILE_CACHE = cache;
  delete process.env[ENV_FILE];
  if (fs.existsSync(path.join(ROOT, '.env'))) {
    process.loadEnvFile(path.join(ROOT, '.env'));
    process.env[ENV_FILE] = path.join(ROOT, '.env');
  }
  var entry = ['src/cli/main.ts', 'dist/cli/main.js']
    .map(function (file) {
      return path.join(ROOT, file);
    })
    .find(fs.existsSync);
  if (entry === undefined) fail('Cairn is not complete here: run `npm run build`, or install it again');
  import(require('url').pathToFileURL(entry).href);
}

/** Runs the command line on the Node that npm installed, and ends with its exit code or signal. */
function relaunch() {
  var node = bundledNode();
  if (node === undefined) fail(MISSING_NODE);
  var environment = Object.assign({}, MALLOC_ARENAS, process.env);
  environment[LAUNCHER] = String(process.pid);
  var child = childProcess.spawn(node, process.execArgv.concat(V8_FLAGS, __filename, process.argv.slice(2)), {
    env: environment,
    // The IPC channel carries no messages. When it closes, the child knows that the launcher was killed.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  var onTerminal = [0, 1, 2].some(tty.isatty);
  ['SIGINT', 'SIGTERM', 'SIGHUP'].forEach(function (signal) {
    process.on(signal, function () {
      // A terminal sends Ctrl-C to both processes; if it were passed on too, the child would count two signals.
      if (signal !== 'SIGINT' || !onTerminal) child.kill(signal);
    });
  });
  child.on('error', function () {
    fail(MISSING_NODE);
  });
  child.on('exit', function (code, signal) {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function bundledNode() {
  var system = os.platform() === 'win32' ? 'win' : os.platform();
  var name = 'node-' + system + '-' + os.arch() + '/bin/node' + (system === 'win' ? '.exe' : '');
  try {
    return require.resolve(name);
  } catch (error) {
    return undefined;
  }
}

/**
 * Ends this process if the launcher is killed, as a killed launcher cannot pass on the signal. That frees the port and
 * the data for a restart; acknowledged writes are on disk.
 */
function endWithLauncher() {
  delete process.env[LAUNCHER];
  process.on('disconnect', function () {
    process.kill(process.pid, 'SIGKILL');
  });
  process.channel.unref();
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

#!/usr/bin/env node
/*
 * The only entry point: starts the command line (src/cli) on a Node that can run it. Written so that Node 12 can still read it,
 * since on a Node that is too old better-sqlite3 ends the process with a segmentation fault rather than an error.
 */
'use strict';

var childProcess = require('child_process');
var fs = require('fs');
var os = require('os');
var path = require('path');
var tty = require('tty');

var ROOT = path.join(__dirname, '..');
/** Holds the launcher's process id in the Node that it started. */
var LAUNCHER = 'CAIRN_LAUNCHER_PID';
/** Holds the process id of a Node that was started again with flags. */
var RESTARTED = 'CAIRN_RESTARTED_PID';
/**
 * What V8 is told before it starts, or not at all; each holds for every thread. The first bounds the young part of its heap, which it lets
 * grow to 130 MB where much of it is in use for a while, as when a thousand documents come in, and keeps; at 17 MB requests took no more
 * time. The second is about its guess from single collections which objects live long, upon which all their like begin among the old
 * ones: what a query makes dies with it, and left 20 KB there a query until the next full collection, without the guess 4. The third
 * lets what is old grow by a tenth before that collection; by itself V8 lets it grow fourfold, and with a half a thousand documents left 15 MB more. None of them costs CPU time that shows.
 */
var V8_FLAGS = ['--max-semi-space-size=8', '--no-allocation-site-pretenuring', '--heap-growing-percent=10'];
/** glibc keeps what was freed apart for eight threads a core, 20 to 30 MB for the dozen threads of a service; for two it is half. */
var MALLOC_ARENAS = { MALLOC_ARENA_MAX: '2' };
var SERVICES = ['serve', 'api', 'worker'];
var MISSING_NODE = 'Cairn needs Node 22.22 or newer: run `npm ci` here, or install Node 24';

main();

function main() {
  // By it `node --watch`, which `npm run dev` uses, has each thread post what it imports among the thread's own messages.
  delete process.env.WATCH_REPORT_DEPENDENCIES;
  if (isNewEnough(process.versions.node)) {
    if (process.env[LAUNCHER]) endWithLauncher();
    else restartWithFlags();
    run();
  } else if (process.env[LAUNCHER]) {
    fail(MISSING_NODE); // What npm installed is too old as well.
  } else {
    relaunch();
  }
}

/** From these versions on, Node strips types by itself and suits all that is installed. */
function isNewEnough(version) {
  var parts = version.split('.').map(Number);
  if (parts[0] === 22) return parts[1] >= 22;
  if (parts[0] === 23) return parts[1] >= 6;
  return parts[0] > 23;
}

/** Starts this process again with the flags that its caller gave none of the kind of, which takes 25 ms; without them on Windows. */
function restartWithFlags() {
  // The same process has the same number: what it was restarted as knows itself, and what it starts is another.
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
  // Not in the shared temporary folder, where another user could leave compiled code for us to run.
  var cache = path.join(ROOT, 'node_modules', '.cache', 'compile');
  require('module').enableCompileCache(cache);
  process.env.NODE_COMPILE_CACHE = cache; // Threads look here; without it each strips the types again and keeps 20 MB for that.
  if (fs.existsSync(path.join(ROOT, '.env'))) process.loadEnvFile(path.join(ROOT, '.env'));
  var entry = ['src/cli/main.ts', 'dist/cli/main.js']
    .map(function (file) {
      return path.join(ROOT, file);
    })
    .find(fs.existsSync);
  if (entry === undefined) fail('Cairn is not complete here: run `npm run build`, or install it again');
  import(require('url').pathToFileURL(entry).href);
}

/** Hands over to the Node that npm installed, and ends as it ends. */
function relaunch() {
  var node = bundledNode();
  if (node === undefined) fail(MISSING_NODE);
  var environment = Object.assign({}, MALLOC_ARENAS, process.env);
  environment[LAUNCHER] = String(process.pid);
  var child = childProcess.spawn(node, process.execArgv.concat(V8_FLAGS, __filename, process.argv.slice(2)), {
    env: environment,
    // The channel carries nothing: its end tells the child that the launcher was killed.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  var onTerminal = [0, 1, 2].some(tty.isatty);
  ['SIGINT', 'SIGTERM', 'SIGHUP'].forEach(function (signal) {
    process.on(signal, function () {
      // A terminal sends Ctrl-C to both; passed on once more it would look like a second, impatient one.
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
 * A launcher that was killed outright could pass nothing on. Ending at once, as it did, frees the port and the data for a
 * restart; what was acknowledged is on disk.
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

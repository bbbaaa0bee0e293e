import type { WriteRequest } from './group-commit.ts';
import type { Committed, GroupRunner } from './group-runner.ts';
import { type CommitFigures, type GroupReply, MAX_GROUP_REQUESTS, type WriteGroup, type WriteReply } from './writer.ts';

/**
 * Time after which a commit takes no further request if other files wait (ms), so that nobody's writes wait longer for
 * one of another tenant's commits than for one long request.
 */
const TURN_MS = 20;

/** A group that waits, with what was committed of it so far. */
interface Waiting {
  readonly group: WriteGroup;
  readonly replies: WriteReply[];
  readonly counted: CommitFigures[];
  readonly onDone: (reply: Omit<GroupReply, 'busy'>) => void;
}

/**
 * The groups that wait for a thread to commit them. Files take turns: each has one commit, which all of its waiting
 * groups share. It ends early if it takes long while other files wait.
 */
export class CommitQueue {
  /** Waiting groups by file, the file whose turn is next first. No list is empty. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #commit: GroupRunner;
  readonly #look: () => void;

  /**
   * @param commit commits requests of one file
   * @param look takes in the groups that have arrived meanwhile, with `push`
   */
  constructor(commit: GroupRunner, look: () => void) {
    this.#commit = commit;
    this.#look = look;
  }

  /** Adds a group behind those of its file. */
  push(group: WriteGroup, onDone: Waiting['onDone']): void {
    const added: Waiting = { group, replies: [], counted: [], onDone };
    const list = this.#waiting.get(group.path);
    if (list === undefined) this.#waiting.set(group.path, [added]);
    else list.push(added);
  }

  /** Whether groups of this file wait; without a path, whether any do. */
  isWaiting(path?: string): boolean {
    return path === undefined ? this.#waiting.size > 0 : this.#waiting.has(path);
  }

  /** Commits requests of the file whose turn is next; does nothing if none waits. */
  commitNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [path, list] = next;
    const requests: WriteRequest[] = [];
    for (const { group, replies } of list) {
      const left = group.requests.slice(replies.length);
      if (requests.length > 0 && requests.length + left.length > MAX_GROUP_REQUESTS) break;
      requests.push(...left);
    }
    const turnEnds = performance.now() + TURN_MS;
    const isOver = () => {
      if (performance.now() < turnEnds) return false;
      this.#look();
      return this.#waiting.size > 1;
    };
    this.#settle(list, this.#commit({ path, requests }, isOver));
    this.#waiting.delete(path);
    // Behind the files that wait now.
    if (list.length > 0) this.#waiting.set(path, list);
  }

  /** Hands replies to the groups that they belong to, and takes out the groups that have all of theirs. */
  #settle(list: Waiting[], { replies, figures }: Committed): void {
    list[0]!.counted.push(figures);
    for (let at = 0; at < replies.length;) {
      const { group, replies: own, counted, onDone } = list[0]!;
      const missing = group.requests.length - own.length;
      own.push(...replies.slice(at, at + missing));
      at += missing;
      if (own.length < group.requests.length) return;
      list.shift();
      onDone({ replies: own, commit: figures, counted });
    }
  }
}

import type { WriteRequest } from './group-commit.ts';
import type { Committed, GroupRunner } from './group-runner.ts';
import { type CommitFigures, type GroupReply, MAX_GROUP_REQUESTS, type WriteGroup, type WriteReply } from './writer.ts';

/**
 * Time after which a commit takes no further request if groups for other files wait (ms). It keeps a tenant with many
 * writes from delaying the writes of other tenants.
 */
const TURN_MS = 20;

/** A group of requests that waits, with the results of those of its requests that are already committed. */
interface Waiting {
  readonly group: WriteGroup;
  readonly replies: WriteReply[];
  readonly counted: CommitFigures[];
  readonly onDone: (reply: Omit<GroupReply, 'busy'>) => void;
}

/**
 * Queue of the request groups that one thread commits. Files take turns: at each turn the waiting groups of one file
 * share a commit, up to `MAX_GROUP_REQUESTS` requests. The commit ends early if it has run for `TURN_MS` and groups for
 * other files wait, or as `commitGroup` says; the other requests are for a later turn of the file.
 */
export class CommitQueue {
  /** Waiting groups by the path of their file, in the order in which the files get their turns. No list is empty. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #commit: GroupRunner;
  readonly #look: () => void;

  /**
   * @param commit commits requests of one file
   * @param look called during a long commit; it must `push` the groups that have arrived in the meantime
   */
  constructor(commit: GroupRunner, look: () => void) {
    this.#commit = commit;
    this.#look = look;
  }

  /**
   * Adds a group behind the waiting groups of its file. `onDone` gets the reply once all requests of the group are
   * done.
   */
  push(group: WriteGroup, onDone: Waiting['onDone']): void {
    const added: Waiting = { group, replies: [], counted: [], onDone };
    const list = this.#waiting.get(group.path);
    if (list === undefined) this.#waiting.set(group.path, [added]);
    else list.push(added);
  }

  /** Whether groups for the file at `path` wait; without a path, whether any groups wait. */
  isWaiting(path?: string): boolean {
    return path === undefined ? this.#waiting.size > 0 : this.#waiting.has(path);
  }

  /** Commits waiting requests of the file that has the next turn; does nothing if no groups wait. */
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
    this.#distribute(list, this.#commit({ path, requests }, isOver));
    this.#waiting.delete(path);
    // Behind the files that wait now.
    if (list.length > 0) this.#waiting.set(path, list);
  }

  /**
   * Distributes replies to the groups that they belong to. Removes each group that has all its replies and calls its
   * `onDone`.
   */
  #distribute(list: Waiting[], { replies, figures, position }: Committed): void {
    list[0]!.counted.push(figures);
    for (let at = 0; at < replies.length;) {
      const { group, replies: own, counted, onDone } = list[0]!;
      const missing = group.requests.length - own.length;
      own.push(...replies.slice(at, at + missing));
      at += missing;
      if (own.length < group.requests.length) return;
      list.shift();
      onDone({ replies: own, commit: figures, counted, position });
    }
  }
}

import type { Topic } from './topic.js'

/** Topics by the project they lie in, so that what changes in one costs the others nothing. */
export class ProjectTopics {
  readonly #byProject = new Map<string, Set<Topic>>()

  /** A list for itself: topics may come and go while it is gone through. */
  within(project: string): readonly Topic[] {
    return [...(this.#byProject.get(project) ?? [])]
  }

  place(topic: Topic, project: string | undefined): void {
    if (topic.project === project) return
    this.remove(topic)
    topic.project = project
    if (project === undefined) return
    const topics = this.#byProject.get(project) ?? new Set()
    this.#byProject.set(project, topics.add(topic))
  }

  remove(topic: Topic): void {
    const { project } = topic
    if (project === undefined) return
    const topics = this.#byProject.get(project)
    topics?.delete(topic)
    if (topics?.size === 0) this.#byProject.delete(project)
    topic.project = undefined
  }
}

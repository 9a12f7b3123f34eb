import type { Identity } from 'busbar/api/identity'
import type { EmailContent, Mailer } from 'busbar/api/mail'
import type { ProjectDirectory } from 'busbar/api/projects'
import {
  type AlertPreference,
  type Instance,
  isProblem,
  type Log,
  type OptionalHandle,
  publicLink,
  type RaisedNotification,
  type Tx
} from 'busbar/sdk'
import type { Notice } from './notice-store.js'

/** What is mailed too. That something went well is not. */
const mailed: ReadonlySet<AlertPreference | null> = new Set<AlertPreference>([
  'deploy_failures',
  'build_failures',
  'quota_threshold'
])

interface AlertMailParts {
  readonly identity: Pick<Identity, 'findUser'>
  readonly projects: Pick<ProjectDirectory, 'find'>
  readonly mailer: OptionalHandle<Mailer>
  readonly instance: Pick<Instance, 'publicUrl'>
  readonly log: Log
}

/** Who is mailed. */
interface Owner {
  readonly userId: string
  readonly email: string
  readonly project: string
  readonly mailer: Mailer
}

/** Mails alerts to the owner of the project, where a mail server is configured. */
export class AlertMail {
  constructor(private readonly parts: AlertMailParts) {}

  /** The owner, where it is one that is mailed; asked for before the transaction in which it is told. */
  async owner({ type, audience, preference }: RaisedNotification): Promise<Owner | undefined> {
    const { identity, projects } = this.parts
    const mailer = this.parts.mailer.get()
    if (audience.kind !== 'project' || !mailed.has(preference) || mailer === undefined) return undefined
    // Mail is sent in the platform's name: not in the words of a third-party plugin.
    if (type.startsWith('x.')) return undefined
    if (!(await mailer.isOn())) return undefined
    const project = await projects.find(audience.projectId)
    const user = project && (await identity.findUser(project.user_id))
    return user && { userId: user.id, email: user.email, project: project.name, mailer }
  }

  async send({ email, project, mailer }: Owner, notice: Notice, tx: Tx): Promise<void> {
    try {
      await mailer.send({ to: email, ...alertEmail(notice, project, this.#linkOf(notice)) }, tx)
    } catch (error) {
      // Neither an address that is none nor a server that was turned off keeps it from the inboxes.
      if (!isProblem(error)) throw error
      this.parts.log.warn({ err: error, notice: notice.id }, 'an alert could not be mailed')
    }
  }

  #linkOf({ link }: Notice): string | undefined {
    return link === null ? undefined : publicLink(this.parts.instance, link)
  }
}

const alertEmail = ({ title, body }: Notice, project: string, url: string | undefined): EmailContent => ({
  subject: title,
  paragraphs: [`${title} (project ${project}).`, ...(body === '' ? [] : [body])],
  ...(url === undefined ? {} : { link: { label: 'Open it in Busbar', url } }),
  note: 'You get this as the owner of the project. Your alert preferences say which alerts you are sent.'
})

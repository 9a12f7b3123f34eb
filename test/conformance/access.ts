import type { Claim } from './claims.js'
import type { LiveClient } from './live-client.js'
import { expect } from './stage.js'

const said = 'x:speaker:said'
const admins = 'x:speaker:admins'

/** Who may hear what, and for how long. */
export const accessClaims: readonly Claim[] = [
  {
    says: [
      'Project access means: the project owner, any member if the project is shared, or an admin.',
      'A pinned token is also limited to its pinned projects.'
    ],
    async holds(t, stage) {
      const { admin, owner, stranger } = stage.cast
      const [inside, outside] = [await stage.makeProject(owner), await stage.makeProject(owner)]
      const channel = `x:speaker:app:${inside.applicationId}`
      const pinned = await stage.makeToken(owner, 'read', [inside.projectId])
      const pinnedElsewhere = await stage.makeToken(owner, 'read', [outside.projectId])
      const ofAdmin = await stage.makeToken(admin, 'read', [outside.projectId])
      for (const who of [owner.session, admin.session, pinned.credential])
        await stage.hears(await stage.connect(who), channel)
      for (const who of [stranger.session, pinnedElsewhere.credential, ofAdmin.credential]) {
        const client = await stage.connect(who)
        client.subscribe(channel, `container-status:${inside.applicationId}`)
        t.match(await client.refusal(channel), { data: { error: 'access denied' } })
        await client.refusal(`container-status:${inside.applicationId}`)
      }
      const sharing = `/api/projects/${inside.projectId}/sharing`
      const waiting = await stage.connect(stranger.session)
      expect(await stage.act(owner.session, 'PUT', sharing, { shared: true }), 200)
      await stage.waits(async () => {
        const before = waiting.on(channel).length
        waiting.subscribe(channel)
        await stage.waits(async () => {
          await stage.say(channel, 'shared')
          return waiting.on(channel).length > before
        }, 'a message or a refusal')
        return waiting.on(channel).some(({ data }) => data === 'shared')
      }, 'every process knows that it is shared')
      expect(await stage.act(owner.session, 'PUT', sharing, { shared: false }), 200)
      await waiting.refusal(channel)
    }
  },
  {
    says: [
      'Access is checked once at subscribe time, against the identity at connection time.',
      'A revoked token or demoted user keeps the open connection until it drops.',
      'Role and pins are those of the handshake, project access is read at subscribe.'
    ],
    async holds(t, stage) {
      const { admin, owner } = stage.cast
      const revoked = await stage.makeToken(owner, 'read')
      const own = `x:speaker:app:${stage.of.applicationId}`
      const client = await stage.connect(revoked.credential)
      await stage.hears(client, said)
      expect(await stage.act(owner.session, 'DELETE', `/api/tokens/${revoked.id}`), 200)
      await stage.waits(
        async () => await stage.isRefusedEverywhere(revoked.credential),
        'the token is refused in every process'
      )
      await stage.stillHears(client, said)
      await stage.hears(client, own)
      t.equal(
        client.end,
        undefined,
        'it also subscribes: access is checked against the identity at connection time'
      )

      const { id, session } = await stage.makeUser('admin')
      const role = `/api/users/${id}/role`
      const demoted = await stage.connect(session)
      await stage.hears(demoted, admins, own)
      expect(await stage.act(admin.session, 'PUT', role, { role: 'member' }), 200)
      await stage.waits(
        async () => await stage.isRefusedEverywhere(session),
        'the session has ended in every process'
      )
      await stage.stillHears(demoted, admins)
      await stage.stillHears(demoted, own)
      t.equal(demoted.end, undefined)
    }
  },
  {
    says: [
      'Whoever loses a project (unshared, removed as a member, the project or the account deleted) loses the subscriptions that showed it, at once.'
    ],
    async holds(t, stage) {
      const { admin, owner, stranger } = stage.cast
      const { projectId, applicationId } = await stage.makeProject(owner)
      const channel = `x:speaker:app:${applicationId}`
      const project = `/api/projects/${projectId}`
      const lost = async (client: LiveClient, what: string): Promise<void> => {
        t.match(await client.refusal(channel), { data: { error: 'access denied' } }, what)
        await stage.stillHears(client, said)
        await stage.nothingMore(client, channel, said)
      }
      const joins = async (): Promise<LiveClient> => {
        await stage.waits(async () => {
          for (const url of stage.listeningUrls)
            if ((await stage.act(stranger.session, 'GET', project, undefined, url)).status !== 200)
              return false
          return true
        }, 'every process knows of it')
        const client = await stage.connect(stranger.session)
        await stage.hears(client, said, channel)
        return client
      }
      const keeps = await stage.connect(owner.session)
      await stage.hears(keeps, said, channel)

      expect(await stage.act(owner.session, 'PUT', `${project}/sharing`, { shared: true }), 200)
      const one = await joins()
      expect(await stage.act(owner.session, 'PUT', `${project}/sharing`, { shared: false }), 200)
      await lost(one, 'unshared')

      expect(
        await stage.act(owner.session, 'PUT', `${project}/members`, {
          email: stranger.email,
          role: 'viewer'
        }),
        200
      )
      const two = await joins()
      expect(await stage.act(owner.session, 'DELETE', `${project}/members/${stranger.id}`), 200)
      await lost(two, 'no member any more')
      await stage.stillHears(keeps, channel)

      const leaving = await stage.makeUser('admin')
      const gone = await stage.connect(leaving.session)
      await stage.hears(gone, said, channel)
      expect(await stage.act(admin.session, 'DELETE', `/api/users/${leaving.id}`), 200)
      t.equal((await gone.closed()).code, 1008, 'the account has gone')

      expect(await stage.act(owner.session, 'DELETE', project), 200)
      await lost(keeps, 'deleted')
    }
  }
]

import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { createRedactor } from '../../../core/log/redactor.js'
import { keyringOf } from '../../../core/secrets/keyring.js'
import { secretsFor } from '../../../core/secrets/secrets.js'
import { Identity } from '../identity.js'

const signatures = () =>
  secretsFor(keyringOf(new Map([['test', randomBytes(32)]]), 'test'), createRedactor(), 'runtime-docker')

const ours = new Identity('here', signatures())
/** Knows the name of our installation and of everything in it, and not its key. */
const forger = new Identity('here', signatures())
const owner = { projectId: 'p', applicationId: 'a' }
const other = { projectId: 'p', applicationId: 'b' }
const signed = 'busbar-signature'

test('a container is whose the mark in its host configuration says, and its labels alone say nothing', async t => {
  const { labels, mark } = ours.ofContainer(owner, undefined)
  const seen = (Labels: Record<string, string>, ContainerIDFile?: string) =>
    ours.container({
      Config: { Labels },
      HostConfig: { ...(ContainerIDFile !== undefined && { ContainerIDFile }) }
    })
  t.same(seen(labels, mark), owner)
  const marks = {
    'no mark': undefined,
    'an empty one': '',
    'the beginning of one': mark.slice(0, mark.indexOf(':') + 1),
    'a mark of another key': forger.ofContainer(owner, undefined).mark,
    "another application's": ours.ofContainer(other, undefined).mark,
    "an image's": `busbar:${ours.ofImage(owner)[signed] ?? ''}`,
    "a network's": `busbar:${ours.ofNetwork(owner, '')[signed] ?? ''}`
  }
  for (const [which, wrong] of Object.entries(marks)) t.equal(seen(labels, wrong), undefined, which)
  t.equal(seen({ ...labels, [signed]: mark, ContainerIDFile: mark }), undefined, 'its mark as a label')
  t.equal(
    seen({ ...labels, 'application-id': 'b' }, mark),
    undefined,
    'its mark and the labels of another one'
  )
  t.equal(seen({ ...labels, 'busbar-instance': 'there' }, mark), undefined, 'of another installation')
})

test('an image is whose its signed labels say; unsigned ones count only for what no registry has sent', async t => {
  const labels = ours.ofImage(owner)
  t.same(ours.image(labels, true), owner)
  t.same(ours.image(labels, false), owner)
  const wrong = {
    'another key': forger.ofImage(owner),
    "the signature of another application's": { ...labels, 'application-id': 'b' },
    "a network's": { ...labels, [signed]: ours.ofNetwork(owner, '')[signed] ?? '' },
    anything: { ...labels, [signed]: 'x' }
  }
  for (const [which, forged] of Object.entries(wrong))
    for (const isPulled of [true, false])
      t.equal(ours.image(forged, isPulled), undefined, `${which}, pulled: ${String(isPulled)}`)
  const { [signed]: _, ...unsigned } = labels
  t.equal(ours.image(unsigned, true), undefined)
  t.same(ours.image(unsigned, false), owner, 'as earlier releases built it')
})

test('a network and a volume are whose their labels say under the name that was signed', async t => {
  const kinds = [
    { of: ours.ofNetwork.bind(ours), forged: forger.ofNetwork.bind(forger), see: ours.network.bind(ours) },
    { of: ours.ofVolume.bind(ours), forged: forger.ofVolume.bind(forger), see: ours.volume.bind(ours) }
  ]
  for (const [n, { of, forged, see }] of kinds.entries()) {
    const labels = of(owner, 'mine')
    t.same(see({ Name: 'mine', Labels: labels }), owner)
    const wrong = {
      'another key': { Labels: forged(owner, 'mine') },
      'the labels of another one': { Name: 'copy', Labels: labels },
      'another owner': { Labels: { ...labels, 'application-id': 'b' } },
      'another kind': { Labels: { ...labels, [signed]: kinds[1 - n]?.of(owner, 'mine')[signed] ?? '' } },
      'an empty signature': { Labels: { ...labels, [signed]: '' } },
      'another installation': { Labels: { ...labels, 'busbar-instance': 'there' } }
    }
    for (const [which, parts] of Object.entries(wrong))
      t.equal(see({ Name: 'mine', ...parts }), undefined, which)
  }
})

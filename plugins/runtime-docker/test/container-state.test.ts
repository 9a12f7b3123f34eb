import type Docker from 'dockerode'
import { test } from 'tap'
import { containerState } from '../container-state.js'

const seen = (state: object): Docker.ContainerInspectInfo =>
  ({
    Id: 'id',
    Name: '/app',
    Config: { Image: 'app:1' },
    State: { Status: 'running', ExitCode: 0, OOMKilled: false, StartedAt: 'then', Error: '', ...state }
  }) as Docker.ContainerInspectInfo
const stateOf = (state: object) => containerState(seen(state), { projectId: 'p' })

test('a container is what the engine says of it, and dead where that is a word of tomorrow', async t => {
  t.match(stateOf({}), {
    id: 'id',
    name: 'app',
    image: 'app:1',
    owner: { projectId: 'p' },
    status: 'running'
  })
  t.equal(stateOf({ Status: 'paused' }).status, 'paused')
  t.equal(stateOf({ Status: 'hibernating' }).status, 'dead')
})

test('its health is none where no check says any, and the output of the last check is cut', async t => {
  t.match(stateOf({}), { health: null, healthOutput: null })
  t.match(stateOf({ Health: { Status: 'none', Log: [] } }), { health: null, healthOutput: null })
  const { health, healthOutput } = stateOf({
    Health: { Status: 'unhealthy', Log: [{ Output: 'before' }, { Output: ` ${'x'.repeat(5000)}\n` }] }
  })
  t.equal(health, 'unhealthy')
  t.match(healthOutput, /^x{4000}/)
  t.ok((healthOutput ?? '').length < 4200)
})

"""From one's own NumPy arrays to a policy in one file. `pip install ./python`, then `python docs/python_tutorial.py`."""

import numpy as np

import album_rl as al

# A log: a thousand episodes of a heater that switched at random. It should keep a room near 20 degrees, cheaply.
rng = np.random.default_rng(0)
episodes, length = 1000, 24
temperature, outside = rng.uniform(10, 26, episodes), rng.uniform(-5, 10, episodes)
rows = []
for hour in range(length):
    heating = rng.uniform(0, 1, episodes)
    reward = -np.abs(temperature - 20) - 0.5 * heating
    rows.append((np.stack([temperature, outside], 1), heating, reward))
    temperature = temperature + 6 * heating - 0.15 * (temperature - outside) + rng.normal(0, 0.2, episodes)
observations, actions, rewards = (np.stack(column, 1).reshape(episodes * length, -1) for column in zip(*rows))
timeouts = np.tile(np.arange(length) == length - 1, episodes)  # the recording ends, the room stays

data = al.Dataset(observations, actions, rewards, timeouts=timeouts, action_bounds=(0, 1))
print(data.inspect())  # what the data is, and what looks wrong with it

agent = al.Album(hidden=(64, 64), seed=0).fit(data, steps=3000, holdout=0.1)
print("a cold room heats by", agent.predict([12.0, 0.0]), "a warm one by", agent.predict([25.0, 0.0]))
print("values", agent.value([[12.0, 0.0], [20.0, 0.0]]))
print(agent.fqe(updates=1000))  # better than what was logged? So short a fit is not calibrated: leave `updates` out

agent.save("heater")  # a run directory: `album report`, `album eval`, al.load("heater")
print(agent.export("heater.onnx")["inputs"])  # for any runtime that reads ONNX

from .dataset import Dataset as Dataset
from .generation import generate_dataset as generate_dataset
